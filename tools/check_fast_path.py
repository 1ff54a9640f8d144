#!/usr/bin/env python3
"""Checks in the machine code of libreheap.so that the fast paths take no lock and run no atomic read-modify-write.

Starting at malloc and free it follows every direct jump and call. It stops where the slow paths begin: at the functions
named by --slow, and at those the compiler put into .text.unlikely because they are marked cold, as the static library's
objects show. On the way there may be no lock prefix, no exchange with memory, no fence, no system call, no call that
leaves the library and no jump that cannot be followed.
"""

import argparse
import dataclasses
import re
import sys

import elf

FUNCTION = re.compile(r"^([0-9a-f]+) <(.+)>:$")
INSTRUCTION = re.compile(r"^\s*([0-9a-f]+):\s+(.*\S)")
PREFIXES = r"^(?:(?:bnd|notrack|data16|addr32|cs|ds|rex[.\w]*) )*"
TARGET = re.compile(PREFIXES + r"(call|j\w+|loop\w*)\s+([0-9a-f]+)\b(?: <([^>]+)>)?")
INDIRECT = re.compile(PREFIXES + r"(call|jmp)\s+\*")

FORBIDDEN = {
    re.compile(r"^(\w+ )*lock\b"): "a locked instruction",
    re.compile(r"^xchg\w*\s.*\("): "an exchange with memory, which locks by itself",
    re.compile(r"^xchg\w*\s.*(%[c-gs]s:|\b0x[0-9a-f]+\b)"): "an exchange with memory, which locks by itself",
    re.compile(r"^(mfence|lfence|sfence|cpuid|serialize)\b"): "a fence",
    re.compile(r"^(syscall|sysenter|int\s)"): "a system call",
}


@dataclasses.dataclass
class Function:
    name: str
    instructions: list[str]


@dataclasses.dataclass
class Walk:
    problems: list[str] = dataclasses.field(default_factory=list)
    walked: list[str] = dataclasses.field(default_factory=list)
    slow: set[str] = dataclasses.field(default_factory=set)
    instructions: int = 0


def functions(library: str) -> dict[int, Function]:
    """The library's functions by address."""
    found: dict[int, Function] = {}
    current = None
    for line in elf.run("objdump", "--disassemble", "--no-show-raw-insn", "--wide", library).splitlines():
        if match := FUNCTION.match(line):
            current = found[int(match.group(1), 16)] = Function(match.group(2), [])
        elif current and (match := INSTRUCTION.match(line)):
            current.instructions.append(match.group(2))
    return found


def addresses(library: str) -> dict[str, int]:
    """Address of every function symbol, local ones included."""
    found = {}
    for line in elf.run("nm", "--format=posix", library).splitlines():
        parts = line.split()
        if len(parts) >= 3 and parts[1] in "tTwWiu":
            found[parts[0]] = int(parts[2], 16)
    return found


def cold_names(archive: str) -> set[str]:
    """Functions in the sections for code that is rarely run."""
    names = set()
    for line in elf.run("objdump", "--syms", "--wide", archive).splitlines():
        parts = line.split()
        if len(parts) >= 4 and any(part.startswith(".text.unlikely") for part in parts):
            names.add(parts[-1])
    return names


def named(where: dict[str, int], names: list[str]) -> dict[int, str]:
    """Address of each function given by its name as in the source, without parameters: rh::rules::free."""
    mangled = list(where)
    readable = elf.run("c++filt", "--no-params", *mangled).splitlines() if mangled else []
    return {where[symbol]: name for symbol, name in zip(mangled, readable, strict=True) if name in names}


def plain(text: str) -> str:
    return text.split(" <")[0].split("#")[0].strip()


def walk(library: str, archive: str, entry: str, slow: tuple[str, ...] = ()) -> Walk:
    result = Walk()
    code, where = functions(library), addresses(library)
    stops = {where[name]: name for name in cold_names(archive) if name in where} | named(where, list(slow))
    for name in set(slow) - set(stops.values()):
        result.problems.append(f"{name} is named as slow, but is no function of {library}")
    if entry not in where or where[entry] not in code:
        result.problems.append(f"{entry} is not in {library}, or its symbols were stripped")
        return result
    waiting, seen = [where[entry]], {where[entry]}
    while waiting:
        function = code[waiting.pop()]
        result.walked.append(function.name)
        for instruction in function.instructions:
            result.instructions += 1
            for problem in instruction_problems(instruction):
                result.problems.append(f"{entry}: {function.name} has {problem}: {plain(instruction)}")
            match = TARGET.match(instruction)
            if not match or (match.group(3) or "").split("+")[0] == function.name:
                continue
            target, name = int(match.group(2), 16), (match.group(3) or match.group(2)).split("+")[0]
            if target in stops or name.endswith(".cold"):
                result.slow.add(stops.get(target, name))
            elif "@plt" in name or target not in code:
                result.problems.append(f"{entry}: {function.name} leaves the library, or to where no function "
                                       f"starts, on a path that is not slow: {instruction}")
            elif target not in seen:
                seen.add(target)
                waiting.append(target)
    return result


def instruction_problems(instruction: str) -> list[str]:
    # What objdump adds in <…> or after # are names, not operands.
    text = plain(instruction)
    found = [what for pattern, what in FORBIDDEN.items() if pattern.search(text)]
    if INDIRECT.match(text):
        found.append("a jump that cannot be followed")
    return found[:1]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", help="libreheap.so, with its symbols")
    parser.add_argument("archive", help="libreheap.a of the same build")
    parser.add_argument("functions", nargs="*", default=["malloc", "free"], help="default: malloc free")
    parser.add_argument("--slow", action="append", default=[], metavar="NAME",
                        help="a function where a slow path begins, as rh::deallocate_slow; may be given again")
    arguments = parser.parse_args()
    problems = []
    for entry in arguments.functions:
        result = walk(arguments.library, arguments.archive, entry, tuple(arguments.slow))
        problems += result.problems
        print(f"{entry}: {result.instructions} instructions in {', '.join(result.walked) or 'nothing'}; "
              f"slow paths it may take: {', '.join(sorted(result.slow)) or 'none'}")
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
