"""What docs/ needs to become a site, beside what mkdocs does: pages by wildcard in the navigation; drawings within the
page, so that they follow its light and dark; and the files of the repository that pages link to, as pages of their own
under repository/."""

import functools
import pathlib
import posixpath
import re
import sys

from mkdocs.structure.files import File, Files

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import project  # noqa: E402

ROOT = project.ROOT
DOCS = "docs"
SHOWN = "repository"
# A link's or a picture's target in Markdown; titles are not used here.
LINK = re.compile(r"(\]\(|^\[[^\]]+\]: )([^)\s#:]+)((?:#[^)\s]*)?)", re.MULTILINE)
FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
DRAWING = re.compile(r'<img alt="[^"]*" src="(?:\.\./)*(images/drawing-[\w-]+\.svg)" ?/?>')
LANGUAGES = {".h": "c", ".c": "c", ".cpp": "cpp", ".py": "python", ".toml": "toml", ".json": "json", ".sh": "sh",
             ".yml": "yaml"}


def on_config(config):
    """Puts the pages that "FOLDER/*" or "*" stands for into the navigation."""
    named = set(_pages(config.nav))
    config.nav = [_expanded(entry, named, pathlib.Path(config.docs_dir)) for entry in config.nav]
    return config


def _pages(entry):
    if isinstance(entry, str):
        yield entry
    else:
        for part in entry.values() if isinstance(entry, dict) else entry:
            yield from _pages(part)


def _expanded(entry, named: set[str], docs: pathlib.Path):
    if isinstance(entry, dict):
        return {title: _expanded(part, named, docs) for title, part in entry.items()}
    if not isinstance(entry, list):
        return entry
    found = []
    for part in entry:
        if isinstance(part, str) and part.endswith("*"):
            pages = sorted(page.relative_to(docs).as_posix() for page in docs.glob(part + ".md"))
            found += [page for page in pages if page not in named]
        else:
            found.append(_expanded(part, named, docs))
    return found


def on_files(files: Files, config) -> Files:
    """Adds a page for each file or folder of the repository that a page links to, and for what those link to."""
    waiting = [(f"{DOCS}/{file.src_uri}", file.content_string) for file in files.documentation_pages()]
    seen = set()
    while waiting:
        place, text = waiting.pop()
        for _, target, _ in LINK.findall(FENCE.sub("", text)):
            path = _outside(place, target)
            if path is None or path in seen:
                continue
            seen.add(path)
            content = _shown(path)
            if isinstance(content, bytes):
                files.append(File.generated(config, f"{SHOWN}/{path}", content=content))
                continue
            files.append(File.generated(config, _address(path), content=content))
            if path.endswith(".md"):
                waiting.append((path, content))
    return files


def on_page_markdown(markdown: str, page, **_) -> str:
    """Turns links to files of the repository into links to their pages."""
    place = _place(page.file.src_uri)
    here = posixpath.dirname(page.file.src_uri)

    def changed(match: re.Match) -> str:
        before, target, anchor = match.groups()
        path = _outside(place, target)
        if path is not None:
            target = posixpath.relpath(_address(path), here or ".")
        elif place.split("/")[0] != DOCS and _normal(place, target).startswith(DOCS + "/"):
            target = posixpath.relpath(_normal(place, target)[len(DOCS) + 1:], here or ".")
        return before + target + anchor

    # What is within <details> is Markdown in the repository, and with this here too.
    markdown = markdown.replace("<details>", "<details markdown>")
    return LINK.sub(changed, markdown) if place.endswith(".md") else markdown


def on_page_content(html: str, config, **_) -> str:
    """Puts drawings into the page itself: a picture of its own would follow the system's colours, not the page's."""
    def drawing(match: re.Match) -> str:
        text = (pathlib.Path(config.docs_dir) / match[1]).read_text(encoding="utf-8")
        return f'<span class="scrolls">{text}</span>'

    return DRAWING.sub(drawing, html)


def _normal(place: str, target: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(place), target))


@functools.cache
def _files() -> list[str]:
    return [path.as_posix() for path in project.files()]


def _folder(path: str) -> list[str]:
    """The files of a folder of the repository."""
    return [file for file in _files() if file.startswith(path + "/")]


def _outside(place: str, target: str) -> str | None:
    """The file or folder of the repository, not of docs/, that a link means. A folder's README stands for it."""
    path = _normal(place, target)
    if path == DOCS or path.startswith((DOCS + "/", "..")) or not (path in _files() or _folder(path)):
        return None
    return f"{path}/README.md" if f"{path}/README.md" in _files() else path


def _address(path: str) -> str:
    """Where the page of a file of the repository lies in the site."""
    if path.endswith((".md", ".png", ".svg")):
        return f"{SHOWN}/{path}"
    return f"{SHOWN}/{path}/index.md" if _folder(path) else f"{SHOWN}/{path}.md"


def _place(address: str) -> str:
    """The file of the repository that a page was made of; of one that shows code, the page's own name."""
    if not address.startswith(SHOWN + "/"):
        return f"{DOCS}/{address}"
    path = address[len(SHOWN) + 1:]
    return path if path in _files() else path.removesuffix(".md")


def _shown(path: str) -> str | bytes:
    if path.endswith((".png", ".svg")):
        return (ROOT / path).read_bytes()
    if inside := _folder(path):
        return f"# {path}/\n\n" + "".join(f"- `{file[len(path) + 1:]}`\n" for file in inside)
    text = (ROOT / path).read_text(encoding="utf-8")
    if path.endswith(".md"):
        return text
    language = LANGUAGES.get(pathlib.PurePosixPath(path).suffix, "text")
    return f"# {path}\n\n~~~~ {language}\n{text}\n~~~~\n"
