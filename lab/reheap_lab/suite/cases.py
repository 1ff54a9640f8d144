"""What is to be measured, one case each, before anything runs."""

import pathlib
from dataclasses import dataclass, field

from reheap_lab.errors import UsageError
from reheap_lab.suite import parameters
from reheap_lab.suite.parameters import Parameter

# Beside parameters, what stands for a place: the folder of the suite's file, a folder for what --setup of a case makes,
# what was fetched for it, the lab's Python, and the kind of machine as file names have it (x86_64).
PLACES = ("here", "case", "packages", "python", "machine")

# Options whose text is the user's own, so that {name} may stand in it.
TEXTS = ("setup", "prepare", "input", "load", "ready", "stop", "env", "cwd")


@dataclass(frozen=True)
class Needs:
    """What a case takes from package registries."""

    wheels: tuple[str, ...] = ()  # as in a requirements file, with hashes
    debian: tuple[str, ...] = ()
    size: str = ""  # of what is fetched

    def __bool__(self) -> bool:
        return bool(self.wheels or self.debian)


@dataclass(frozen=True)
class Planned:
    name: str
    group: str
    command: tuple[str, ...]
    words: dict = field(default_factory=dict)  # options as `reheap compare` has them, those that are given
    parameters: dict[str, str] = field(default_factory=dict)
    about: str = ""
    needs: Needs = Needs()
    here: pathlib.Path | None = None  # the folder of the file that names it

    def placed(self, places: dict[str, str]) -> tuple[list[str], dict]:
        """The command and the options, with everything in its place."""
        known = self.parameters | places
        texts = {key: parameters.fill(value, known) for key, value in self.words.items() if key in TEXTS}
        return list(parameters.fill(self.command, known)), self._located(self.words | texts)

    def _located(self, words: dict) -> dict:
        """Paths in a file start from its folder, wherever the lab was started."""
        if self.here and "input" in words:
            words["input"] = str(self.here / words["input"])
        if self.here and not words.get("own_folder"):
            words["cwd"] = str(self.here / words.get("cwd", ""))
        return words


def swept(group: str, command: tuple[str, ...], words: dict, given: list[Parameter], places: tuple[str, ...] = (),
          **more) -> list[Planned]:
    """A case for each combination of the parameters' values."""
    texts = [command, *(words[key] for key in TEXTS if key in words)]
    for parameter in given:
        if parameter.name in PLACES:
            raise UsageError(f"{{{parameter.name}}} has a meaning of its own: give the parameter another name")
    parameters.check_used(given, texts)
    made = []
    for values in parameters.product(given):
        name = " ".join(filter(None, [group, parameters.title(values)]))
        planned = Planned(name, group, command, words, values, **more)
        planned.placed(dict.fromkeys(places, ""))  # what has no value is found before anything runs
        made.append(planned)
    return made
