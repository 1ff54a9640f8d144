"""The options that several commands have, and the settings they make."""

import pathlib

import click

from reheap_lab import allocators
from reheap_lab.errors import UsageError
from reheap_lab.settings import OwnFigure, Server, Settings, seconds, share


class Converted(click.ParamType):
    """An option's value read by a function of settings.py."""

    def __init__(self, name: str, read):
        self.name = name
        self._read = read

    def convert(self, value, parameter, context):
        try:
            return value if isinstance(value, float) else self._read(value)
        except UsageError as error:
            self.fail(str(error), parameter, context)


TIME, SHARE = Converted("TIME", seconds), Converted("SHARE", share)


class AllocatorList(click.ParamType):
    name = "NAME[=LIB],..."

    def shell_complete(self, context, parameter, incomplete):
        before, comma, _ = incomplete.rpartition(",")
        known = [allocators.SYSTEM, *allocators.OWN, *allocators.KNOWN]
        words = (before + comma + name for name in known if name not in before.split(","))
        return [click.shell_completion.CompletionItem(w) for w in words if w.startswith(incomplete)]


def _as_one(_context, _parameter, lists: tuple[str, ...]) -> str | None:
    return ",".join(lists) or None


MEASURING = (
    click.option("--with", "with_", type=AllocatorList(), multiple=True, callback=_as_one,
                 help="Allocators; the first is the base. May be given again. Without it: all found here"),
    click.option("--runs", type=click.IntRange(1), metavar="N", help="Exactly N rounds"),
    click.option("--time", type=TIME, help="As many rounds as fit into TIME. Without --runs and --time: until precise"),
    click.option("--warmup", type=click.IntRange(0), default=1, show_default=True, metavar="N",
                 help="Rounds that do not count"),
    click.option("--margin", type=SHARE, default=0.01, help="What differs by less is the same  [default: 1%]"),
    click.option("--confidence", type=SHARE, default=0.99, help="Of each interval  [default: 99%]"),
    click.option("--seed", type=int, default=0, show_default=True, help="Of the order of runs"),
    click.option("--sample-ms", type=click.IntRange(0), default=10, show_default=True, metavar="N",
                 help="Time between two looks at the memory; 0: none"),
    click.option("--timeout", type=TIME, help="A run that takes longer has failed"),
    click.option("--no-extras", is_flag=True, help="Leave out the further runs that profile and count memory calls"),
    click.option("--export", "exports", type=click.Path(path_type=pathlib.Path, dir_okay=False), multiple=True,
                 metavar="FILE", help="Write .json, .csv, .md or .html; may be given again"),
)

COMMAND = (
    click.option("--setup", metavar="CMD", help="Shell command to run once, before everything"),
    click.option("--prepare", metavar="CMD", help="Shell command to run before each run"),
    click.option("--input", metavar="FILE",
                 help="The command's standard input"),
    click.option("--output", type=click.Choice(["compare", "check", "discard"]), default="compare", show_default=True,
                 help="Its standard output: warn, or fail, when it differs between allocators; or /dev/null"),
    click.option("--check-output", is_flag=True, help="The same as --output check"),
    click.option("--side-by-side", is_flag=True, help="Run both of two allocators at once, each on its own processor"),
    click.option("--more-is-better", multiple=True, metavar="NAME=PATTERN",
                 help="A figure that CMD prints (a server's load): the first group of a regular expression"),
    click.option("--less-is-better", multiple=True, metavar="NAME=PATTERN", help="The same for times and sizes"),
    click.option("--ignore-status", is_flag=True, help="An exit status other than 0 is no failure"),
)

SERVER = (
    click.option("--load", metavar="CMD", help="CMD is a server: start it, drive it with this shell command, stop it"),
    click.option("--ready", metavar="CMD", help="Shell command that succeeds once the server answers"),
    click.option("--idle", type=TIME, help="How long the server is left alone after the load  [default: 5s]"),
    click.option("--stop", metavar="CMD", help="Shell command that stops the server. Without it: SIGTERM"),
)


def options(*groups):
    """Puts groups of options on a command, in their order."""
    def put(function):
        for option in reversed([option for group in groups for option in group]):
            function = option(function)
        return function
    return put


def settings_of(words: dict) -> Settings:
    """From the options, of whichever command has them."""
    given = {name: value for name, value in words.items() if name in Settings.__dataclass_fields__}
    given |= {"allocators": words.get("with_"), "warmups": words["warmup"], "extras": not words["no_extras"]}
    if words.get("check_output"):
        given["output"] = "check"
    own = [OwnFigure.parse(text, more_is_better=option == "more_is_better")
           for option in ("more_is_better", "less_is_better") for text in words.get(option) or ()]
    return Settings(**given, server=_server(words), own=own)


def _server(words: dict) -> Server | None:
    given = {name: words[name] for name in ("load", "ready", "idle", "stop") if words.get(name) is not None}
    if given and "load" not in given:
        raise UsageError(f"--{next(iter(given))} is for servers, and those need --load CMD too")
    return Server(**given) if given else None
