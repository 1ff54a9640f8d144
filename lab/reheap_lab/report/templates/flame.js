(function () {
  const data = JSON.parse(document.getElementById("flame-data").textContent);
  const graph = document.getElementById("flame"), told = document.getElementById("told");
  const search = document.getElementById("search"), whole = document.getElementById("whole");
  const chips = [...document.querySelectorAll(".kind")];
  const NARROWEST = 1.5; // pixels: what is narrower is not drawn

  const nodes = data.nodes.map(([name, parent, ...weights]) => {
    const [short, full, file, module, colour] = data.names[name];
    // One colour a module, in shades: functions beside each other can be told apart.
    const shade = [...short].reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) % 997, 7) % 5;
    return { short, full, file, module, colour, mix: colour ? 30 + 6 * shade : 20, parent, weights, inside: [] };
  });
  nodes.forEach((node, number) => { if (node.parent >= 0) nodes[node.parent].inside.push(number); });
  let kind = Math.max(0, chips.findIndex((chip) => chip.getAttribute("aria-pressed") === "true"));
  let shown = 0; // the node that is as wide as the page
  let matches = null;

  const amount = (value) => {
    if (!data.kinds[kind].bytes) return value.toLocaleString("en") + (value === 1 ? " allocation" : " allocations");
    let unit = "B";
    for (const next of ["KiB", "MiB", "GiB"]) { if (value < 1024) break; value /= 1024; unit = next; }
    return `${unit === "B" ? value : value.toPrecision(Math.max(3, String(Math.floor(value)).length))} ${unit}`;
  };
  const percent = (part, of) => of ? `${(100 * part / of).toFixed(part / of < 0.1 ? 2 : 1)} %` : "–";

  function tell(node) {
    const about = data.exact ? "" : "about ", weight = node.weights[kind];
    const within = shown && node !== nodes[shown] ? `, ${percent(weight, nodes[shown].weights[kind])} of ${nodes[shown].short}` : "";
    told.firstChild.textContent = node.full;
    told.lastChild.textContent = `${about}${amount(weight)}, ${percent(weight, nodes[0].weights[kind])} of all${within}` +
      [node.file, node.module].filter(Boolean).map((part) => ` · ${part}`).join("");
  }

  function draw() {
    const width = graph.clientWidth || 800, row = matchMedia("(max-width: 560px)").matches ? 24 : 19;
    const made = document.createDocumentFragment();
    let deepest = 0;
    const box = (number, left, share, depth, above) => {
      const node = nodes[number], drawn = document.createElement("div");
      drawn.className = "box" + (above ? " above" : "") + (share * width < 30 ? " narrow" : "") + (matches?.has(number) ? " match" : "");
      drawn.style.cssText = `left:${100 * left}%;width:${100 * share}%;top:${depth * row}px;` +
        `background:color-mix(in srgb, var(--c${node.colour}) ${node.mix}%, var(--panel))`;
      if (share * width >= 30) drawn.textContent = node.short;
      drawn.dataset.node = number;
      made.append(drawn);
      deepest = Math.max(deepest, depth);
    };
    const above = [];
    for (let up = nodes[shown].parent; up >= 0; up = nodes[up].parent) above.unshift(up);
    above.forEach((number, depth) => box(number, 0, 1, depth, true));
    const waiting = nodes[shown].weights[kind] ? [[shown, 0, 1, above.length]] : [];
    while (waiting.length) {
      const [number, left, share, depth] = waiting.pop(), node = nodes[number];
      box(number, left, share, depth, false);
      let from = left;
      for (const child of [...node.inside].sort((a, b) => nodes[b].weights[kind] - nodes[a].weights[kind])) {
        const part = share * nodes[child].weights[kind] / node.weights[kind];
        if (part * width < NARROWEST) break;
        waiting.push([child, from, part, depth + 1]);
        from += part;
      }
    }
    graph.replaceChildren(made);
    if (!nodes[0].weights[kind]) graph.textContent = "Nothing of this kind.";
    graph.style.height = `${(deepest + 1) * row}px`;
    whole.hidden = shown === 0;
    tell(nodes[shown]);
  }

  function find() {
    const text = search.value.trim().toLowerCase(), status = document.getElementById("matched");
    matches = text ? new Set() : null;
    let sum = 0;
    const counted = new Set(); // within a match a second one is not counted again
    nodes.forEach((node, number) => {
      if (!text) return;
      const fits = [node.full, node.short, node.file, node.module].some((part) => part.toLowerCase().includes(text)) && number > 0;
      if (fits) matches.add(number);
      if (fits && !counted.has(node.parent)) sum += node.weights[kind];
      if (fits || counted.has(node.parent)) counted.add(number);
    });
    graph.classList.toggle("searching", Boolean(text));
    status.textContent = text ? `${matches.size.toLocaleString("en")} found: ${amount(sum)}, ${percent(sum, nodes[0].weights[kind])} of all` : "";
  }

  function weigh() {
    chips.forEach((chip, number) => chip.setAttribute("aria-pressed", String(number === kind)));
    for (const table of document.querySelectorAll("table.weighed")) {
      const rows = [...table.tBodies[0].rows].map((row) => [Number(row.dataset.weights.split(" ")[kind]), row]);
      table.tBodies[0].append(...rows.sort((a, b) => b[0] - a[0]).map(([, row]) => row));
      for (const row of [...table.rows]) [...row.cells].forEach((cell, place) => cell.classList.toggle("by", place === kind + 1));
      [...table.tHead.rows[0].cells].forEach((cell, place) => {
        if (place === kind + 1) cell.setAttribute("aria-sort", "descending"); else cell.removeAttribute("aria-sort");
      });
    }
    find();
    draw();
  }

  const node = (event) => event.target.closest?.(".box")?.dataset.node;
  graph.addEventListener("mouseover", (event) => { if (node(event)) tell(nodes[node(event)]); });
  graph.addEventListener("mouseleave", () => tell(nodes[shown]));
  graph.addEventListener("click", (event) => { if (node(event)) { shown = Number(node(event)); draw(); } });
  whole.addEventListener("click", () => { shown = 0; draw(); });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape" && shown) { shown = 0; draw(); } });
  search.addEventListener("input", () => { find(); draw(); });
  chips.forEach((chip, number) => chip.addEventListener("click", () => { kind = number; weigh(); }));
  let width = 0;
  new ResizeObserver(() => { if (graph.clientWidth !== width) { width = graph.clientWidth; draw(); } }).observe(graph);
  weigh();
}());
