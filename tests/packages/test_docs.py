"""The site of docs/: it can be made, leaves no page and no link out, and its pages load nothing from elsewhere. And the
links of every Markdown file of the repository, as they are followed there."""

import html.parser
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tools" / "site")]

import build  # noqa: E402
import project  # noqa: E402
import tidy  # noqa: E402

# Elements that make a browser load something, and the attribute that says what. A link in <a> waits for a click.
LOADS = {"script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src", "object": "data",
         "image": "href", "use": "href"}
ELSEWHERE = re.compile(r"\s*(?:https?:)?//")
# rel of <link>s that say something and load nothing.
SAYS = {"canonical", "prev", "next"}


@pytest.fixture(scope="session")
def site(tmp_path_factory) -> pathlib.Path:
    """The site, made anew and strictly: a page in no menu, a missing link or heading end this with what is wrong."""
    folder = tmp_path_factory.mktemp("site")
    build.build(folder)
    return folder


def loaded_from_elsewhere(text: str) -> list[str]:
    found = []

    class Reader(html.parser.HTMLParser):
        def handle_starttag(self, tag, attrs):
            values = dict(attrs)
            target = values.get(LOADS.get(tag, ""), "") or ""
            if ELSEWHERE.match(target) and values.get("rel") not in SAYS:
                found.append(f"{tag}: {target}")
            if "mermaid" in (values.get("class") or "").split():
                found.append("mermaid, which its script fetches from elsewhere")

    Reader().feed(text)
    return found + imported(" ".join(re.findall(r"<style.*?</style>", text, re.DOTALL)))


def imported(css: str) -> list[str]:
    targets = re.findall(r"url\(['\"]?([^)'\"]*)|@import\s+['\"]([^'\"]*)", css)
    return ["".join(target) for target in targets if ELSEWHERE.match("".join(target))]


def test_pages_load_nothing_from_elsewhere(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > 50
    wrong = {str(page.relative_to(site)): loaded_from_elsewhere(page.read_text()) for page in pages}
    wrong |= {str(css.relative_to(site)): imported(css.read_text()) for css in site.rglob("*.css")}
    assert {page: found for page, found in wrong.items() if found} == {}


@pytest.mark.parametrize("text", ['<script src="https://example.org/x.js"></script>', '<img src="//example.org/x.png">',
                                  '<link rel="stylesheet" href="http://example.org/x.css">', '<pre class="mermaid">',
                                  "<style>@import 'https://example.org/x.css'</style>"])
def test_what_is_loaded_is_seen(text):
    assert loaded_from_elsewhere(text)
    assert not loaded_from_elsewhere(text.replace("https://example.org", "").replace("//example.org", "")
                                     .replace("http:", "").replace("mermaid", ""))


def test_every_page_of_docs_is_there(site):
    pages = [path for path in project.files(ROOT) if path.parts[0] == "docs" and path.suffix == ".md"]
    menu = (site / "index.html").read_text()
    missing = [str(page) for page in pages if f'href="{page.relative_to("docs").with_suffix(".html")}"' not in menu]
    assert missing == []


def test_files_outside_docs_are_shown(site):
    header = (site / "repository" / "include" / "reheap" / "reheap.h.html").read_text()
    assert "rh_heap_create_bound" in header
    assert 'href="repository/include/reheap/reheap.h.html"' in (site / "profiles.html").read_text()
    assert 'href="repository/integrations/llvm/index.html"' in (site / "windows.html").read_text()


def test_drawings_stand_in_the_page(site):
    assert (site / "how-it-works.html").read_text().count('class="drawing"') == 3


@pytest.mark.parametrize(("page", "complaint"), [("[to](nowhere.md)", "nowhere.md"),
                                                 ("[to](other.md#nothing)", "nothing"),
                                                 ("[to](../include/nothing.h)", "nothing.h")])
def test_what_is_missing_ends_the_build(tmp_path, page, complaint):
    assert complaint in errors_of(tmp_path, page, ["index.md", "other.md"])


def test_a_page_in_no_menu_ends_the_build(tmp_path):
    assert "other.md" in errors_of(tmp_path, "", ["index.md"])


def errors_of(folder: pathlib.Path, page: str, nav: list[str]) -> str:
    """Makes a site of two pages with the project's rules, which has to fail, and gives what is said."""
    docs, config = folder / "docs", folder / "mkdocs.yml"
    docs.mkdir()
    (docs / "index.md").write_text(f"# Index\n\n{page}\n")
    (docs / "other.md").write_text("# Other\n")
    config.write_text(f"INHERIT: {build.HERE}/mkdocs.yml\ndocs_dir: {docs}\nnav: {nav}\nplugins: []\n"
                      f"hooks: [{build.HERE}/hooks.py]\ntheme:\n  name: mkdocs\n  custom_dir: {build.HERE}/theme\n")
    made = subprocess.run([build.python(), "-m", "mkdocs", "build", "--strict", "-f", config, "-d", folder / "site"],
                          capture_output=True, text=True)
    assert made.returncode != 0
    return made.stderr


def measured(section: str, table: str, column: int) -> str:
    """What reheap has in the first table of performance.md's section whose heading begins so."""
    text = (ROOT / "docs" / "performance.md").read_text()
    text = text.split(f"<!-- figures: {section} -->")[1].split(f"<!-- end of figures: {section} -->")[0]
    row = re.search(r"\| \*\*reheap\*\* (\|.*)", text[text.index(table):]).group(1)
    return row.split("|")[column].strip()


@pytest.mark.parametrize("page", ["README.md", "docs/index.md", "docs/compared.md"])
def test_leading_figures_are_the_measured_ones(page):
    """Whoever measures anew has to say it on these pages too."""
    text = (ROOT / page).read_text()
    assert measured("programs", "| geometric mean, CPU time", 1) in text
    assert measured("programs", "| geometric mean, peak resident memory", 1) in text
    assert f"{measured('idle', 'each thread freed its own blocks', 5)} %" in text


def headings(path: pathlib.Path) -> set[str]:
    """The anchors that a Markdown file has in the repository."""
    text = re.sub(r"(?ms)^(```|~~~).*?^\1", "", path.read_text(encoding="utf-8"))
    found: set[str] = set()
    for title in re.findall(r"(?m)^#+ +(.*)$", text):
        title = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title)
        slug = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
        name, number = slug, 0
        while name in found:
            number += 1
            name = f"{slug}-{number}"
        found.add(name)
    return found


def broken_links(root: pathlib.Path, files: list[pathlib.Path]) -> list[str]:
    broken = []
    for file in files:
        prose = re.sub(r"(?ms)^(```|~~~).*?^\1|`[^`]*`", "", (root / file).read_text(encoding="utf-8"))
        for match in tidy.LINK.finditer(prose):
            target, _, anchor = (match.group(1) or match.group(2)).partition("#")
            if re.match(r"[a-z][a-z0-9+.-]*:", target):
                continue
            path = root / file.parent / target if target else root / file
            if not path.exists() or (anchor and path.suffix == ".md" and anchor not in headings(path)):
                broken.append(f"{file}: {match.group(1) or match.group(2)}")
    return broken


def test_links_of_every_markdown_file():
    files = [path for path in project.files(ROOT) if path.suffix == ".md"]
    assert len(files) > 50
    assert broken_links(ROOT, files) == []


def test_broken_links_are_seen(tmp_path):
    (tmp_path / "a.md").write_text("# A `b`: c\n[](#a-b-c) [](b.md) [](a.md#a) [](https://example.org/x#y) `[](c)`\n")
    assert broken_links(tmp_path, [pathlib.Path("a.md")]) == ["a.md: b.md", "a.md: a.md#a"]
