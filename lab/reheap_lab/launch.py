"""How one command is started under one allocator: all that the runner is told about it."""

from dataclasses import dataclass, field


@dataclass
class Launch:
    argv: list[str]
    env: dict[str, str] = field(default_factory=dict)  # added to the lab's own environment
    unset: list[str] = field(default_factory=list)
    watch: str | None = None  # the process to measure, by name, where it is not the one started
