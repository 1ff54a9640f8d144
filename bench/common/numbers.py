"""Numbers as options give them."""

import argparse


def positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("must be 1 or more")
    return value


def positives(text: str) -> list[int]:
    """Of several after commas, in rising order."""
    return sorted({positive(part) for part in text.split(",")})
