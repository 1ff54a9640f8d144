"""The lab: measures what each allocator does for a program, and says how sure that is."""

__version__ = "0.1.0"
