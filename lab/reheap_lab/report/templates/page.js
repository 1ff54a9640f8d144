"use strict";
(function () {
  const root = document.documentElement;
  const remember = (value) => { try { localStorage.setItem("reheap-theme", value); } catch { /* a file may have no storage */ } };
  const dark = () => (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  try { const kept = localStorage.getItem("reheap-theme"); if (kept) root.dataset.theme = kept; } catch { /* as above */ }
  if (["#light", "#dark"].includes(location.hash)) root.dataset.theme = location.hash.slice(1);

  const theme = document.getElementById("theme");
  const name = () => { theme.textContent = dark() ? "Light" : "Dark"; };
  name();
  theme.hidden = false;
  theme.addEventListener("click", () => { root.dataset.theme = dark() ? "light" : "dark"; remember(root.dataset.theme); name(); });

  const focus = document.createElement("style");
  document.head.append(focus);
  const chips = [...document.querySelectorAll(".chip[data-series]")];
  for (const chip of chips) {
    chip.addEventListener("click", () => {
      const on = chip.getAttribute("aria-pressed") !== "true";
      for (const other of chips) other.setAttribute("aria-pressed", String(other === chip && on));
      focus.textContent = on ? `.series:not(.${chip.dataset.series}) { opacity: .12; }` : "";
    });
  }

  for (const button of document.querySelectorAll("[data-copy]")) {
    if (!navigator.clipboard) continue;
    button.hidden = false;
    button.addEventListener("click", () => navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent)
      .then(() => { button.textContent = "Copied"; }));
  }

  // A link to what is folded up unfolds it.
  const unfold = () => {
    const target = document.getElementById(location.hash.slice(1));
    if (target instanceof HTMLDetailsElement) { target.open = true; target.scrollIntoView(); }
  };
  addEventListener("hashchange", unfold);
  unfold();
}());
