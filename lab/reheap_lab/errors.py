"""What goes wrong in a way the user can mend."""


class LabError(Exception):
    """Its text names what is wrong and what to do about it."""

    status = 1


class UsageError(LabError):
    status = 2
