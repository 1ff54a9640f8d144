"""The lab: measures what each allocator does for a program, and says how sure that is."""

from reheap import __version__

__all__ = ["__version__"]
