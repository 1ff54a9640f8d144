"""A suite's file (TOML): settings for all cases on top, and a table for each case."""

import difflib
import pathlib
import shlex
import tomllib
from collections.abc import Callable
from dataclasses import dataclass

from reheap_lab import settings
from reheap_lab.errors import UsageError
from reheap_lab.results import read_text
from reheap_lab.settings import OwnFigure
from reheap_lab.suite import parameters
from reheap_lab.suite.cases import PLACES, Needs, Planned, swept


@dataclass(frozen=True)
class Suite:
    title: str
    cases: list[Planned]
    path: pathlib.Path


class _Wrong(Exception):
    """What is wrong with a value; whoever reads it knows where it stands."""


def _a(kind: type, name: str) -> Callable:
    def read(value):
        if not isinstance(value, kind) or isinstance(value, bool) != (kind is bool):
            raise _Wrong(f"must be {name}, not {value!r}")
        return value
    return read


_text, _flag, _number, _table = (_a(str, "a text"), _a(bool, "true or false"), _a(int, "a whole number"),
                                 _a(dict, "a table"))


def _at_least(least: int) -> Callable:
    def read(value):
        if _number(value) < least:
            raise _Wrong(f"must be at least {least}, not {value}")
        return value
    return read


def _converted(convert: Callable[[str], float], example: str) -> Callable:
    def read(value):
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise _Wrong(f"must be like {example}, not {value!r}")
        return convert(str(value))
    return read


def _one_of(*words: str) -> Callable:
    def read(value):
        if value not in words:
            raise _Wrong(f"must be one of {', '.join(words)}, not {value!r}")
        return value
    return read


def _texts(value) -> tuple[str, ...]:
    """One, or a list of them."""
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, list) or not all(isinstance(one, str) for one in values):
        raise _Wrong(f"must be a text or a list of texts, not {value!r}")
    return tuple(values)


def _command(value) -> tuple[str, ...]:
    try:
        words = tuple(shlex.split(value)) if isinstance(value, str) else _texts(value)
    except ValueError as error:
        raise _Wrong(f"is no command: {error}") from None
    if not words:
        raise _Wrong("must not be empty")
    return words


def _env(value) -> dict[str, str]:
    for name, text in _table(value).items():
        if not isinstance(text, str) or not name or "=" in name:
            raise _Wrong(f"must give each variable a text; {name} has {text!r}")
    return value


def _figures(value) -> tuple[str, ...]:
    for text in _texts(value):
        OwnFigure.parse(text, True)
    return _texts(value)


def _parameters(value) -> list[parameters.Parameter]:
    made = []
    for name, words in _table(value).items():
        if isinstance(words, str):
            made.append(parameters.parse(f"{name}={words}"))
        elif isinstance(words, list) and all(isinstance(w, str | int | float) and not isinstance(w, bool)
                                             for w in words):
            made.append(parameters.listed(name, map(str, words)))
        else:
            raise _Wrong(f"must give {name} a list of values, or a text like 1..64*2")
    return made


_TIME, _SHARE = _converted(settings.seconds, '"250ms", "90s" or 90'), _converted(settings.share, '"1%" or 0.01')

# Those of `reheap compare`, each under its own name.
OPTIONS = {
    "with": _text, "runs": _at_least(1), "time": _TIME, "warmup": _at_least(0), "margin": _SHARE,
    "confidence": _SHARE, "seed": _number, "sample_ms": _at_least(0), "timeout": _TIME, "no_extras": _flag,
    "setup": _text, "prepare": _text, "input": _text, "output": _one_of("compare", "check", "discard"),
    "side_by_side": _flag, "more_is_better": _figures, "less_is_better": _figures, "ignore_status": _flag,
    "load": _text, "ready": _text, "idle": _TIME, "stop": _text,
    "env": _env, "cwd": _text, "own_folder": _flag,
}
ON_TOP = OPTIONS | {"title": _text, "case": _table}
OF_A_CASE = OPTIONS | {"command": _command, "about": _text, "parameters": _parameters, "wheels": _texts,
                       "debian": _texts, "size": _text}


def read(path: pathlib.Path) -> Suite:
    try:
        data = tomllib.loads(read_text(path))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(f"{path}: not TOML: {error}") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    if _holds_nul(data):
        raise UsageError(f"{path}: a text holds the character of number 0 (\\u0000), which no command can be given")
    here = path.absolute().parent
    common = _settings(data, ON_TOP, str(path))
    tables = common.pop("case", {})
    title = common.pop("title", path.stem)
    if not tables:
        raise UsageError(f"{path} names no case. A case is a table: [case.NAME], with its command = \"…\"")
    cases = [case for name, table in tables.items() for case in _cases(path, name, table, common, here)]
    _check_figures(path, cases)
    return Suite(title, cases, path)


def _holds_nul(value) -> bool:
    if isinstance(value, dict):
        return any(map(_holds_nul, (*value.keys(), *value.values())))
    return any(map(_holds_nul, value)) if isinstance(value, list) else isinstance(value, str) and "\0" in value


def _settings(table: dict, known: dict[str, Callable], where: str) -> dict:
    made = {}
    for key, value in table.items():
        if key not in known:
            close = difflib.get_close_matches(key, known, 1)
            raise UsageError(f"{where}: no setting is called {key}" + (f"; is {close[0]} meant?" if close else
                                                                       f". There are: {', '.join(known)}"))
        try:
            made[key] = known[key](value)
        except (_Wrong, UsageError) as error:
            raise UsageError(f"{where}: {key} {error}" if isinstance(error, _Wrong) else
                             f"{where}: {key}: {error}") from None
    return made


def _cases(path: pathlib.Path, name: str, table, common: dict, here: pathlib.Path) -> list[Planned]:
    where = f"{path}: case {name}"
    if not isinstance(table, dict):
        raise UsageError(f"{where} is no table: write [case.{name}]")
    if not name.strip() or "," in name or not name.isprintable():
        raise UsageError(f"{where}: a name is a text in one line without commas: --only takes names by commas")
    own = _settings(table, OF_A_CASE, where)
    if "command" not in own:
        raise UsageError(f"{where} has no command")
    command, given = own.pop("command"), own.pop("parameters", [])
    about = own.pop("about", "")
    needs = Needs(own.pop("wheels", ()), own.pop("debian", ()), own.pop("size", ""))
    try:
        return swept(name, command, _merged(common, own), given, PLACES, about=about, needs=needs, here=here)
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from None


def _merged(common: dict, own: dict) -> dict:
    """The case's own settings count, but --runs and --time, of which one stands for the other."""
    if "runs" in own or "time" in own:
        common = {key: value for key, value in common.items() if key not in ("runs", "time")}
    if "own_folder" in own or "cwd" in own:
        common = {key: value for key, value in common.items() if key not in ("own_folder", "cwd")}
    env = common.get("env", {}) | own.get("env", {})
    return common | own | ({"env": env} if env else {})


def _check_figures(path: pathlib.Path, cases: list[Planned]) -> None:
    """A figure's name means one thing in a report."""
    better: dict[str, str] = {}
    for case in cases:
        for option in ("more_is_better", "less_is_better"):
            for text in case.words.get(option, ()):
                name = OwnFigure.parse(text, True).name
                if better.setdefault(name, option) != option:
                    raise UsageError(f"{path}: {name} is better when it is more in one case and when it is less in "
                                     "another. Give the figures two names")


def only(suite: Suite, wanted: str | None) -> list[Planned]:
    """The cases that --only names."""
    if wanted is None:
        return suite.cases
    groups = list(dict.fromkeys(case.group for case in suite.cases))
    names = [word.strip() for word in wanted.split(",") if word.strip()]
    for name in names:
        if name not in groups:
            raise UsageError(f"--only {name}: there is no such case. There are: {', '.join(groups)}")
    if not names:
        raise UsageError(f"--only names no case. There are: {', '.join(groups)}")
    return [case for case in suite.cases if case.group in names]
