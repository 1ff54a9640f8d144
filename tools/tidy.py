#!/usr/bin/env python3
"""Checks the style rules that a compiler cannot: ./dev tidy. Each rule is one function below."""

import ast
import dataclasses
import pathlib
import re
import sys
from collections.abc import Iterator

import project
from cplusplus import CODE_SUFFIXES, SOURCE_SUFFIXES, comment_above, functions, includes, without_comments

# From the top down: a folder knows itself and those after it (docs/ARCHITECTURE.md).
FOLDERS = ["bench", "lab", "command", "redirect", "src"]
# The same within src/.
LAYERS = ["entry", "hardened", "heap", "slabs", "arena", "profile", "platform", "base"]

# Where headers of the operating system may be included, and where code may ask which one it is: elsewhere a folder
# linux/, windows/ or darwin/ holds what differs. (__MACH__ and __ELF__ say of what form object files are.)
OS_FOLDERS = ("src/platform/", "src/entry/", "command/", "redirect/", "lab/native/")
OS_MACRO_FOLDERS = ("src/platform/", "src/entry/linux/", "src/entry/windows/", "src/entry/darwin/", "tests/")
OS_MACROS = re.compile(
    r"\b(_WIN32|_WIN64|__CYGWIN__|__MINGW\w+|__linux__|__linux|__gnu_linux__|__APPLE__|TARGET_OS_\w+|"
    r"__unix__|__unix|__FreeBSD__|__NetBSD__|__OpenBSD__|__DragonFly__|__sun|__HAIKU__|__Fuchsia__|__EMSCRIPTEN__|"
    r"__ANDROID__|__BIONIC__|__GLIBC__|__GLIBC_PREREQ|_POSIX_VERSION)\b")

# What src/ may include beside its own files: a freestanding C++ and the C headers that need no OS.
FREE_HEADERS = {"atomic", "bit", "compare", "concepts", "cstddef", "cstdint", "limits", "new", "type_traits",
                "errno.h", "float.h", "limits.h", "stdarg.h", "stdbool.h", "stddef.h", "stdint.h", "string.h"}
CXX_HEADER = re.compile(r"[a-z_]+$")  # no suffix: a header of the C++ library

MOST_LINES = 600
MOST_COLUMNS = 120
MOST_FUNCTION_LINES = 60
# Above a function that is longer: a table, or assembly, and the reason.
LONG_FUNCTION = re.compile(r"(//|#).*\blong: \w")

BUILT_FOLDERS = ("src/", "command/", "redirect/", "tests/", "bench/", "lab/")
OWN_FOLDERS = ("include/", *BUILT_FOLDERS)
TEXT_SUFFIXES = CODE_SUFFIXES | {".py", ".sh", ".md", ".cmake"}

# Spelt in pieces, so that this file and its test may be checked too.
UNFINISHED = re.compile(r"\b(" + "|".join(["TO" + "DO", "FIX" + "ME", "X" + "XX", "HA" + "CK"]) + r")\b|"
                        r"\b(?i:stu" + "b)(bed|s)?" + r"\b")
MACHINE_PATH = re.compile(r"(?<![\w.$}/])/(work|ro" + r"ot|tmp/ba" + r"sh)(?=/|_|\b)")
REGISTRY_HOST = re.compile(
    r"\b((deb|security|snapshot|ftp)\.deb" + r"ian\.org|(archive|security)\.ubuntu\.com|pypi\.(org|io)|"
    r"files\.pythonhosted\.org|(static|index)\.crates\.io|crates\.io/api|registry\.npmjs\.org|registry\.yarnpkg\.com|"
    r"repo1?\.maven\.(org|apache\.org)|proxy\.golang\.org|ghcr\.io|docker\.io)\b")

LINK = re.compile(r"!?\[[^\]]*\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)|^\[[^\]]+\]:\s*(\S+)", re.MULTILINE)
CODE_PATH = re.compile(
    r"`((?:src|include|command|redirect|tests|bench|lab|docs|tools|integrations|cmake|dev\.d)/[\w./+-]+)`")


@dataclasses.dataclass(frozen=True, order=True)
class Violation:
    path: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


class Tree:
    """The project's text files, by path with forward slashes."""

    def __init__(self, root: pathlib.Path):
        self.root = root
        self.texts: dict[str, str] = {}
        for path in project.files(root):
            try:
                self.texts[path.as_posix()] = (root / path).read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue  # not text: nothing to say about it

    def code(self, *folders: str) -> Iterator[tuple[str, str]]:
        for path, text in self.texts.items():
            if path.startswith(folders) and pathlib.PurePosixPath(path).suffix in CODE_SUFFIXES:
                yield path, text

    def __contains__(self, path: str) -> bool:
        return path in self.texts

    def exists(self, path: str) -> bool:
        return (self.root / path).exists()


# ---- where things are -------------------------------------------------------------------------

# Where a build looks for headers.
INCLUDE_FOLDERS = [pathlib.PurePosixPath(folder) for folder in ("src", "include", ".", "command", "lab/native")]


def resolve(tree: Tree, path: str, name: str) -> str | None:
    """The project's file that an #include means, or None."""
    here = pathlib.PurePosixPath(path).parent
    for folder in (here, *INCLUDE_FOLDERS):
        candidate = normal(folder / name)
        if candidate in tree:
            return candidate
    return None


def normal(path: pathlib.PurePosixPath) -> str:
    parts: list[str] = []
    for part in path.parts:
        if part == ".." and parts and parts[-1] != "..":
            parts.pop()
        elif part != ".":
            parts.append(part)
    return "/".join(parts)


def layer_of(path: str) -> str | None:
    parts = path.split("/")
    return parts[1] if parts[0] == "src" and len(parts) > 2 else None


# ---- the rules --------------------------------------------------------------------------------

def layer_order(tree: Tree) -> Iterator[Violation]:
    """src/ includes only its own layer and lower ones, include/ nothing internal."""
    for path, text in tree.code("src/", "include/"):
        layer = layer_of(path)
        if layer is not None and layer not in LAYERS:
            yield Violation(path, 1, f"src/{layer} is no layer; there are {' > '.join(LAYERS)}")
            continue
        for line, name, _ in includes(text):
            target = resolve(tree, path, name)
            if target is None or target.startswith("include/"):
                continue
            if path.startswith("include/"):
                yield Violation(path, line, f"a public header includes {target}, which is internal")
            elif not target.startswith("src/"):
                yield Violation(path, line, f"src/ includes {target}, which is outside src/ and include/")
            elif layer and layer_of(target) in LAYERS and LAYERS.index(layer_of(target)) < LAYERS.index(layer):
                yield Violation(path, line, f"{layer} includes {target}, a higher layer; "
                                f"the order is {' > '.join(LAYERS)}")


def folder_order(tree: Tree) -> Iterator[Violation]:
    """A top folder knows itself and lower ones: by what it includes, imports, builds and names."""
    path_of = re.compile(r"(?:\.\./|\$\{\w+\}/|/ *[\"'])(" + "|".join(FOLDERS) + r")(?=[/\"'])")
    for path, text in tree.texts.items():
        top = path.split("/")[0]
        if top not in FOLDERS:
            continue
        named = []
        if pathlib.PurePosixPath(path).suffix in CODE_SUFFIXES:
            targets = ((line, resolve(tree, path, name)) for line, name, _ in includes(text))
            named = [(line, target.split("/")[0]) for line, target in targets if target]
        elif is_build_file(path):
            named = [(line_of(text, match), match.group(1)) for match in path_of.finditer(text)]
        for line, other in named:
            if other in FOLDERS and FOLDERS.index(other) < FOLDERS.index(top):
                yield Violation(path, line, f"{top}/ knows {other}/, which stands above it; "
                                f"the order is {' > '.join(FOLDERS)}")


def circles(tree: Tree) -> Iterator[Violation]:
    """No two files of one folder need each other; a header and its source are one."""
    needs: dict[str, set[str]] = {}
    for path, text in tree.code(*OWN_FOLDERS):
        own = unit_of(path)
        targets = [resolve(tree, path, name) for _, name, _ in includes(text)]
        units = {unit_of(target) for target in targets if target and within(target) == within(path)}
        needs.setdefault(own, set()).update(units - {own})
    for members in sorted(map(sorted, knots(needs))):
        yield Violation(first_file(tree, members[0]), 1, "need each other: " + " ".join(map(name_of, members)))


def knots(needs: dict[str, set[str]]) -> set[frozenset[str]]:
    """The largest sets of units each of which can be reached from each."""
    reach = {unit: reached(needs, unit) for unit in needs}
    return {frozenset(other for other in reach[unit] if unit in reach.get(other, ())) for unit in needs
            if unit in reach[unit]}


def reached(needs: dict[str, set[str]], begin: str) -> set[str]:
    found: set[str] = set()
    waiting = [begin]
    while waiting:
        new = needs.get(waiting.pop(), set()) - found
        found |= new
        waiting.extend(new)
    return found


def within(path: str) -> str:
    return path.rpartition("/")[0]


def unit_of(path: str) -> str:
    return path.rpartition(".")[0]


def name_of(unit: str) -> str:
    return unit.rpartition("/")[2]


def first_file(tree: Tree, unit: str) -> str:
    return min(path for path in tree.texts if unit_of(path) == unit)


def known_headers(tree: Tree) -> Iterator[Violation]:
    """src/ includes its own files and a freestanding library; OS headers only where the OS may be named."""
    for path, text in tree.code("src/", "include/"):
        for line, name, _ in includes(text):
            if resolve(tree, path, name) is not None or name in FREE_HEADERS:
                continue
            if CXX_HEADER.match(name):
                if path.startswith("include/"):
                    continue  # a C++ convenience stands on its user's C++ library
                yield Violation(path, line, f"<{name}> would bring in the C++ library; allowed are "
                                "<atomic> <bit> <compare> <concepts> <cstddef> <cstdint> <limits> <new> <type_traits>")
            elif not path.startswith(OS_FOLDERS):
                yield Violation(path, line, f"<{name}> belongs to the OS or does not exist; "
                                f"such headers stand only in {', '.join(OS_FOLDERS)}")


def os_macros(tree: Tree) -> Iterator[Violation]:
    """OS macros only where code may ask for the OS. Public headers speak of compilers alone."""
    for path, text in tree.code(*OWN_FOLDERS):
        if path.startswith(OS_MACRO_FOLDERS):
            continue
        for number, line in enumerate(without_comments(text).splitlines(), 1):
            match = OS_MACROS.search(line)
            if match:
                yield Violation(path, number, f"{match.group()} stands only in {', '.join(OS_MACRO_FOLDERS)}")


def number_macros(tree: Tree) -> Iterator[Violation]:
    """Numbers in src/ are constexpr: a misspelt macro is 0 without a word. Switches asked by #if are not numbers."""
    switches = set()
    for _, text in tree.code("src/"):
        for condition in re.findall(r"(?m)^\s*#\s*(?:if|elif)\b(.*)$", without_comments(text)):
            switches.update(re.findall(r"\w+", condition))
    for path, text in tree.code("src/"):
        for number, line in enumerate(without_comments(text).splitlines(), 1):
            match = re.match(r"\s*#\s*define\s+(\w+)\s+(\S.*)", line)
            if match and is_number(match.group(2)) and match.group(1) not in switches:
                yield Violation(path, number, f"{match.group(1)} is a number: make it constexpr")


def is_number(body: str) -> bool:
    """Whether a macro's body is arithmetic on at least one number and nothing else."""
    rest = re.sub(r"\b(0[xX][0-9a-fA-F']+|0[bB][01']+|[0-9][0-9'.]*)[uUlLzZfF]*\b", "\0", body)
    if "\0" not in rest:
        return False
    rest = re.sub(r"\b[A-Z_][A-Z0-9_]*\b|\b(unsigned|signed|long|int|short|char|(std::)?u?int\d+_t|(std::)?size_t|"
                  r"(std::)?uintptr_t|sizeof|static_cast)\b", "", rest)
    return re.fullmatch(r"[\0\s()+*/%<>&|^~,{}-]*", rest) is not None


def unfinished(tree: Tree) -> Iterator[Violation]:
    """Nothing that says of itself that it is not done."""
    yield from matches(tree, UNFINISHED, "says that something is not done: finish it, or say what is")


def machine_traces(tree: Tree) -> Iterator[Violation]:
    """No path of one machine, no registry's address: those belong to whoever runs this."""
    yield from matches(tree, MACHINE_PATH, "is a path of one machine")
    yield from matches(tree, REGISTRY_HOST, "is a registry's host: its client knows where it is")


def matches(tree: Tree, pattern: re.Pattern, complaint: str) -> Iterator[Violation]:
    for path, text in tree.texts.items():
        for number, line in enumerate(text.splitlines(), 1):
            match = pattern.search(line)
            if match:
                yield Violation(path, number, f"'{match.group()}' {complaint}")


def long_files(tree: Tree) -> Iterator[Violation]:
    for path, text in tree.code("src/"):
        lines = text.count("\n")
        if lines > MOST_LINES:
            yield Violation(path, lines, f"{lines} lines; a file of src/ has at most {MOST_LINES}")


def long_lines(tree: Tree) -> Iterator[Violation]:
    """Tables in documents cannot be broken, nor what is quoted there."""
    for path, text in tree.texts.items():
        if pathlib.PurePosixPath(path).suffix not in TEXT_SUFFIXES and not path.endswith("CMakeLists.txt"):
            continue
        quoted = False
        for number, line in enumerate(text.splitlines(), 1):
            quoted ^= path.endswith(".md") and line.startswith("```")
            table = path.endswith(".md") and (line.startswith("|") or quoted)
            if len(line) > MOST_COLUMNS and not table:
                yield Violation(path, number, f"{len(line)} columns; a line has at most {MOST_COLUMNS}")


def long_functions(tree: Tree) -> Iterator[Violation]:
    """A function fits on a screen. One that is a table or assembly says so above: 'long: why'."""
    for path, text in tree.texts.items():
        lines = text.splitlines()
        if path.endswith(".py"):
            found = python_functions(text)
        elif path.startswith(OWN_FOLDERS) and pathlib.PurePosixPath(path).suffix in CODE_SUFFIXES:
            found = functions(text)
        else:
            continue
        for begin, end in found:
            above = comment_above(lines, begin)
            if end - begin + 1 > MOST_FUNCTION_LINES and not LONG_FUNCTION.search(above):
                yield Violation(path, begin, f"a function of {end - begin + 1} lines; it has at most "
                                f"{MOST_FUNCTION_LINES}, unless a comment above says 'long: why'")


def python_functions(text: str) -> Iterator[tuple[int, int]]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.lineno, node.end_lineno


def unused_declarations(tree: Tree) -> Iterator[Violation]:
    """What a header declares, somebody uses: a function is called or its address taken, a constant is read."""
    used = used_names(tree)
    for path, text in tree.code("src/", "command/", "redirect/", "lab/", "bench/"):
        if not path.endswith(".h"):
            continue
        for number, line in enumerate(without_comments(text).splitlines(), 1):
            match = DECLARATION.match(line)
            if match and match.group(1) not in used and match.group(1) not in LANGUAGE_NAMES:
                yield Violation(path, number, f"nobody uses {match.group(1)}")


# A function's or a constant's, at the left or in a class. What runs of itself is not called by name.
DECLARATION = re.compile(
    r"(?:  )?(?!(?:return|else|case|using|namespace|#|typedef|friend|explicit|static_assert|alignas)\b)"
    r"[\w:][\w:<>,*& ]*?[ *&]([a-z]\w+|k[A-Z]\w+)(?:\(.*[^{]|(?:\[\w*\])? = .*);?$")
STATEMENTS = ("#", ":", "return", "if", "}", "while", "for", "static_assert")
LANGUAGE_NAMES = {"operator", "main", "begin", "end"}


def used_names(tree: Tree) -> set[str]:
    """Every name that stands where it is used: within a body, behind '=' or '{', or in a macro."""
    used: set[str] = set()
    for path, text in tree.texts.items():
        if pathlib.PurePosixPath(path).suffix not in CODE_SUFFIXES:
            if is_build_file(path) or path.endswith((".def", ".map")):
                used.update(re.findall(r"\w+", text))
            continue
        for line in without_comments(text).splitlines():
            words = line
            if re.match(r"(  )?\S", line) and not line.lstrip().startswith(STATEMENTS):
                head = re.split(r"[={]", line, maxsplit=1)
                own = DECLARATION.match(line)
                if own or not line.startswith("  "):
                    words = " ".join([*head[1:], *re.findall(r"\[(\w+)\]", head[0])])
            used.update(re.findall(r"\w+", words))
    return used


def built_sources(tree: Tree) -> Iterator[Violation]:
    """Every source is part of something that is built: named, or globbed, in a build file or a script."""
    mentions = [mention for path, text in tree.texts.items() if is_build_file(path)
                for mention in source_mentions(path, text)]
    for path, _ in tree.code(*BUILT_FOLDERS):
        if pathlib.PurePosixPath(path).suffix in SOURCE_SUFFIXES and not any(m(path) for m in mentions):
            yield Violation(path, 1, "is built by nothing: no CMakeLists.txt, *.cmake or script names or globs it")


def is_build_file(path: str) -> bool:
    return path.endswith(("CMakeLists.txt", ".cmake", ".py", ".sh")) and not path.startswith("tools/")


# Stands for what a build file puts in place of a variable.
HOLE = "\0"


def source_mentions(path: str, text: str):
    """For each word of a build file that means sources, whether a given path is meant."""
    here = pathlib.PurePosixPath(path).parent
    text = re.sub(r"(?m)#.*$", "", text)
    words = set(re.findall(r"[\w+-]+", text))
    for word in set(re.findall(r"""[\w./*?${}<>+-]+\.(?:cpp|c)\b""", text)):
        for variable, folder in {"CMAKE_CURRENT_SOURCE_DIR": here, "CMAKE_CURRENT_LIST_DIR": here,
                                 "PROJECT_SOURCE_DIR": ".", "CMAKE_SOURCE_DIR": ".", "REHEAP_SRC": "src"}.items():
            word = word.replace("${%s}" % variable, f"/{folder}")
        pattern = re.sub(r"\$\{\w+\}|\{[^}]*\}", HOLE, word)
        bases = ["."] if pattern.startswith("/") else [here, "."]
        for base in bases:
            yield lambda source, p=normal(pathlib.PurePosixPath(base) / pattern.lstrip("/")): meant(source, p, words)
        # Python joins folders with '/': folder / "name.c" is told by the name alone, in the script's part.
        if path.endswith(".py"):
            yield lambda source, p=pattern.rsplit("/", 1)[-1], part=path.split("/")[0] + "/": (
                source.startswith(part) and meant(source.rsplit("/", 1)[-1], p, words))


def meant(path: str, pattern: str, words: set[str]) -> bool:
    """Whether the pattern covers the path. '*' stays within one folder, '**' does not, and what fills a hole must be a
    word of the build file: the variable had it from there."""
    parts = {"**": ".*", "*": "[^/]*", "?": "[^/]", HOLE: "([^/]+)"}
    expression = "".join(parts.get(part) or re.escape(part) for part in re.split(rf"(\*\*|\*|\?|{HOLE})", pattern))
    match = re.fullmatch(expression, path)
    return match is not None and all(filling in words for filling in match.groups())


def links(tree: Tree) -> Iterator[Violation]:
    """What a document links to, or names as a file of this project, is there."""
    for path, text in tree.texts.items():
        if not path.endswith(".md"):
            continue
        prose = re.sub(r"(?ms)^```.*?^```", lambda block: "\n" * block.group().count("\n"), text)
        for match in LINK.finditer(prose):
            target = (match.group(1) or match.group(2)).split("#")[0]
            if target and not re.match(r"[a-z][a-z0-9+.-]*:", target):
                file = normal(pathlib.PurePosixPath(path).parent / target)
                if not tree.exists(file):
                    yield Violation(path, line_of(prose, match), f"links to {target}, which is not there")
        for match in CODE_PATH.finditer(prose):
            if not tree.exists(match.group(1)):
                yield Violation(path, line_of(prose, match), f"names {match.group(1)}, which is not there")


def line_of(text: str, match: re.Match) -> int:
    return text.count("\n", 0, match.start()) + 1


RULES = [folder_order, layer_order, circles, known_headers, os_macros, number_macros, unfinished, machine_traces,
         long_files, long_lines, long_functions, unused_declarations, built_sources, links]


def check(root: pathlib.Path) -> list[Violation]:
    tree = Tree(root)
    return sorted({violation for rule in RULES for violation in rule(tree)})


def main() -> int:
    if len(sys.argv) > 1:
        print(f"tidy: takes no arguments, not {' '.join(sys.argv[1:])}", file=sys.stderr)
        return 2
    violations = check(project.ROOT)
    for violation in violations:
        print(violation)
    print(f"tidy: {len(RULES)} rules, {len(violations)} violations")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
