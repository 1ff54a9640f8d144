"""How one command is started under one allocator: all that the runner is told about it."""

import typing
from dataclasses import dataclass, field


@dataclass
class Launch:
    argv: list[str]
    env: dict[str, str] = field(default_factory=dict)  # added to the lab's own environment
    unset: list[str] = field(default_factory=list)
    before: list[str] = field(default_factory=list)  # starts the runner
    account: bool = False  # for every process, in every run
    watch: str | None = None  # the process to measure, by name, where it is not the one started
    profiled: typing.Callable[[int], list[str]] | None = None  # in place of argv: samples by itself, so often a second
    # Puts right the runner's lines, where others know better.
    amend: typing.Callable[[list[dict[str, typing.Any]]], list[dict[str, typing.Any]]] | None = None
