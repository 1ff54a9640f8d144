"""What a stack is weighed by, and what each weight is called."""

from dataclasses import dataclass

# The figures of a stack, as `reheap-trace sites` prints them.
FIGURES = ("allocations", "bytes", "never_freed", "never_freed_bytes", "at_peak", "at_peak_bytes", "temporary",
           "temporary_bytes")


@dataclass(frozen=True)
class Kind:
    """One of the questions that --by may ask."""

    figure: str
    label: str  # as a heading
    in_bytes: bool = True

    @property
    def place(self) -> int:
        return FIGURES.index(self.figure)

    @property
    def count(self) -> str:
        """The figure that says in how many blocks."""
        return {"bytes": "allocations"}.get(self.figure, self.figure.removesuffix("_bytes"))


KINDS = {
    "peak": Kind("at_peak_bytes", "live at the peak"),
    "never-freed": Kind("never_freed_bytes", "never freed"),
    "bytes": Kind("bytes", "bytes allocated"),
    "allocations": Kind("allocations", "allocations", in_bytes=False),
    "temporary": Kind("temporary", "temporary allocations", in_bytes=False),
}

# Of a profile that the library wrote: it may end before the program does, and does not see what is freed at once.
LIVE_KINDS = {
    "peak": KINDS["peak"],
    "never-freed": Kind("never_freed_bytes", "live at its end"),
    "bytes": KINDS["bytes"],
    "allocations": KINDS["allocations"],
}
