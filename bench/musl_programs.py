"""Real programs made for musl, of what crates carry the source of. Each takes a number of threads and an amount of
work, and looks itself at what it computes (bench/workloads/musl)."""

from pathlib import Path

from common.paths import BUILD, WORKLOADS, WORKLOADS_BUILT
from common.programs import build
from registries import fetch_crate, run_step

SOURCES = BUILD / "musl-sources"
# Of each the crate, where in it the source lies, its files ("*": all but those behind it), and how they are compiled.
PROGRAMS = {
    "sqlite": ("libsqlite3-sys", "0.30.1", "sqlite3", ["sqlite3.c"],
               ["-DSQLITE_THREADSAFE=2", "-DSQLITE_DEFAULT_MEMSTATUS=0"]),
    "lua": ("lua-src", "547.0.0", "lua-5.4.7", ["*", "lua.c", "luac.c"], ["-DLUA_USE_POSIX"]),
    "quickjs": ("rquickjs-sys", "0.9.0", "quickjs", ["quickjs.c", "libregexp.c", "libunicode.c", "cutils.c", "libbf.c"],
                ["-D_GNU_SOURCE"]),
}


def files_of(folder: Path, names: list[str]) -> list[Path]:
    if names[0] == "*":
        return sorted(path for path in folder.glob("*.c") if path.name not in names)
    return [folder / name for name in names]


def prepare(name: str, compiler: str, level: str = "-O2") -> Path:
    """The program, made once for each level of optimisation."""
    crate, version, inside, names, flags = PROGRAMS[name]
    source = fetch_crate(crate, version, SOURCES) / inside
    objects = WORKLOADS_BUILT / f"{name}-{version}-musl{level}"
    library = objects / f"lib{name}.a"
    if not library.exists():
        objects.mkdir(parents=True, exist_ok=True)
        files = files_of(source, names)
        run_step([compiler, level, "-w", "-c", *flags, *files], cwd=objects)
        run_step(["ar", "rcs", library, *(objects / file.with_suffix(".o").name for file in files)])
    # Behind the program's own source, for what it needs of the library.
    behind = ["-I", source, "-Wno-unused-parameter", "-Wl,--whole-archive", library, "-Wl,--no-whole-archive"]
    return build(WORKLOADS / "musl" / f"{name}.c", WORKLOADS_BUILT / f"{name}-musl{level}", behind, compiler)
