"""What the tools ask of an ELF file, through binutils."""

import subprocess


def run(*command: str) -> str:
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if result.returncode != 0:
        raise SystemExit(f"{' '.join(command)} failed: {result.stderr.strip()}")
    return result.stdout


def exported(path: str) -> list[str]:
    """The names other objects can bind to."""
    lines = run("nm", "--dynamic", "--defined-only", "--format=posix", path).splitlines()
    return sorted({line.split()[0].split("@")[0] for line in lines})


def dynamic(path: str) -> list[tuple[str, str]]:
    """(tag, text) of the dynamic section: ("NEEDED", "libc.so.6"), ("FLAGS", "BIND_NOW")…"""
    entries = []
    for line in run("readelf", "--dynamic", "--wide", path).splitlines():
        parts = line.split(maxsplit=2)
        if len(parts) == 3 and parts[1].startswith("("):
            text = parts[2]
            entries.append((parts[1].strip("()"), text[text.find("[") + 1:text.rfind("]")] if "[" in text else text))
    return entries


def symbol_versions(path: str) -> set[str]:
    """The versions of the symbols it takes from other libraries: "GLIBC_2.17"…"""
    lines = run("objdump", "--dynamic-syms", path).splitlines() if dynamic(path) else []
    return {word.strip("()") for line in lines if "*UND*" in line for word in line.split() if word.startswith("(GLIBC_")
            or word.startswith("GLIBC_")}


def needed_names(path: str) -> set[str]:
    """The names it cannot be loaded without."""
    lines = run("nm", "--dynamic", "--undefined-only", "--format=posix", path).splitlines() if dynamic(path) else []
    return {line.split()[0].split("@")[0] for line in lines if line.split()[1] == "U"}


def is_64_bit(path: str) -> bool:
    return "ELF64" in run("readelf", "--file-header", path)
