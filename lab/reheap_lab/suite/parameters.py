"""What varies from case to case: parameters with their values, and `{name}` where a value belongs.

A value is written as it is, or as a range of numbers: 1..4 (each), 0..100+20 (by steps), 1..64*2 (by factors).
"""

import decimal
import itertools
import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

from reheap_lab.errors import UsageError

MOST = 1000  # values of one parameter, and cases of a sweep

NAME = re.compile(r"[A-Za-z_]\w*$", re.ASCII)
_NUMBER = r"[+-]?\d+(?:\.\d+)?"
_RANGE = re.compile(rf"({_NUMBER})\.\.({_NUMBER})(?:([+*])(\d+(?:\.\d+)?))?$", re.ASCII)
_PLACE = re.compile(r"\{\{(\w+)\}\}|\{([A-Za-z_]\w*)\}", re.ASCII)


@dataclass(frozen=True)
class Parameter:
    name: str
    values: tuple[str, ...]


def parse(text: str) -> Parameter:
    """name=VALUE,VALUE,…"""
    name, equals, values = text.partition("=")
    if not equals or not values:
        raise UsageError(f"{text!r} gives a parameter no values; for example: threads=1,2,4,8 or n=1..64*2")
    words = [word.strip() for word in values.split(",")]
    return listed(name.strip(), [value for word in words for value in _values(name.strip(), word)])


def listed(name: str, values: Iterable[str]) -> Parameter:
    """The values as they are."""
    if not NAME.match(name):
        raise UsageError(f"{name!r} cannot be a parameter's name: letters, digits and _ make one")
    values = tuple(values)
    if not values:
        raise UsageError(f"the parameter {name} has no values")
    twice = next((value for value in values if values.count(value) > 1), None) if len(values) <= MOST else None
    if twice is not None:
        raise UsageError(f"the parameter {name} has the value {twice} twice")
    if len(values) > MOST:
        raise UsageError(f"the parameter {name} has {len(values)} values; at most {MOST} make sense")
    return Parameter(name, values)


def _values(name: str, word: str) -> list[str]:
    found = _RANGE.match(word)
    if not found:
        if not word:
            raise UsageError(f"the parameter {name} has an empty value; in a suite's file, a list may hold one")
        return [word]
    first, last = Decimal(found[1]), Decimal(found[2])
    way, step = found[3] or "+", Decimal(found[4] or 1)
    if last < first:
        raise UsageError(f"{name}={word}: a range goes up, from the smaller number to the larger")
    if way == "+" and step == 0 or way == "*" and (step <= 1 or first <= 0):
        raise UsageError(f"{name}={word}: this would never arrive. A range goes by steps above 0 (0..100+20), or by "
                         "factors above 1 from a number above 0 (1..64*2)")
    return list(_steps(name, word, first, last, way, step))


def _steps(name: str, word: str, first: Decimal, last: Decimal, way: str, step: Decimal) -> Iterable[str]:
    value = first
    with decimal.localcontext(prec=50):
        for count in itertools.count(1):
            if value > last:
                return
            if count > MOST:
                raise UsageError(f"{name}={word}: more than {MOST} values")
            yield f"{value:f}"
            value = value + step if way == "+" else value * step


def product(parameters: list[Parameter]) -> list[dict[str, str]]:
    """Every combination, the last parameter's values running fastest."""
    names = [parameter.name for parameter in parameters]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice:
        raise UsageError(f"the parameter {twice} is given twice; its values go into one: {twice}=1,2,3")
    cases = 1
    for parameter in parameters:
        cases *= len(parameter.values)
    if cases > MOST:
        raise UsageError(f"the parameters make {cases} cases; at most {MOST} make sense")
    return [dict(zip(names, values)) for values in itertools.product(*(one.values for one in parameters))]


def fill(value, known: dict[str, str]):
    """A text, or the texts in a list or a table, with every `{name}` replaced; `{{name}}` is `{name}` itself."""
    if isinstance(value, str):
        return _PLACE.sub(lambda found: _put(found, known), value)
    if isinstance(value, list | tuple):
        return type(value)(fill(item, known) for item in value)
    if isinstance(value, dict):
        return {key: fill(item, known) for key, item in value.items()}
    return value


def _put(found: re.Match, known: dict[str, str]) -> str:
    if found[1]:
        return f"{{{found[1]}}}"
    if found[2] not in known:
        there = f" There are: {', '.join(known)}." if known else ""
        raise UsageError(f"{{{found[2]}}}: no parameter has this name.{there} Where the braces themselves are meant, "
                         f"write {{{{{found[2]}}}}}")
    return known[found[2]]


def named_in(value) -> set[str]:
    """The names that `fill` would look up."""
    if isinstance(value, str):
        return {found[2] for found in _PLACE.finditer(value) if found[2]}
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return set().union(*map(named_in, items))


def check_used(parameters: list[Parameter], texts) -> None:
    used = named_in(texts)
    for parameter in parameters:
        if parameter.name not in used:
            raise UsageError(f"the parameter {parameter.name} stands nowhere in the command: write "
                             f"{{{parameter.name}}} where its value belongs")


def title(values: dict[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in values.items())
