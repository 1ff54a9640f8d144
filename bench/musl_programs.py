"""Real programs made for musl: of what crates carry the source of, and one that runs what Rust made for musl. Each
takes a number of threads and an amount of work, and looks itself at what it computes (bench/workloads/musl)."""

from pathlib import Path

from common.paths import BUILD, WORKLOADS, WORKLOADS_BUILT
from common.programs import build
from registries import fetch_crate, fetch_wheel, run_step

SOURCES = BUILD / "musl-sources"
# In C. Of each the crate, where in it the source lies, its files ("*": all but those behind it), how it is compiled.
COMPILED = {
    "sqlite": ("libsqlite3-sys", "0.30.1", "sqlite3", ["sqlite3.c"],
               ["-DSQLITE_THREADSAFE=2", "-DSQLITE_DEFAULT_MEMSTATUS=0"]),
    "lua": ("lua-src", "547.0.0", "lua-5.4.7", ["*", "lua.c", "luac.c"], ["-DLUA_USE_POSIX"]),
    "quickjs": ("rquickjs-sys", "0.9.0", "quickjs", ["quickjs.c", "libregexp.c", "libunicode.c", "cutils.c", "libbf.c"],
                ["-D_GNU_SOURCE"]),
}
# Made by Rust, as PyPI has it for musl.
WASMTIME = "50.0.1"
PROGRAMS = [*COMPILED, "wasmtime"]


def files_of(folder: Path, names: list[str]) -> list[Path]:
    if names[0] == "*":
        return sorted(path for path in folder.glob("*.c") if path.name not in names)
    return [folder / name for name in names]


def prepare(name: str, compiler: str, level: str = "-O2") -> Path:
    """The program, made once for each level of optimisation."""
    if name == "wasmtime":
        return prepare_wasmtime(compiler)
    crate, version, inside, names, flags = COMPILED[name]
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


def prepare_wasmtime(compiler: str) -> Path:
    wheel = fetch_wheel("wasmtime", WASMTIME, "musllinux_1_2_x86_64", SOURCES)
    library = wheel / "wasmtime" / "linux-x86_64" / "_libwasmtime.so"
    # Beside the program, which brings the one that the library asks for.
    unwind = build(WORKLOADS / "musl" / "unwind.c", WORKLOADS_BUILT / "wasmtime-musl-libraries" / "libgcc_s.so.1",
                   ["-shared", "-fPIC", "-Wl,-soname,libgcc_s.so.1"], compiler)
    # The library asks for versions of its symbols, of which musl knows nothing.
    flags = [library, f"-Wl,-rpath,{unwind.parent}", "-Wl,--allow-shlib-undefined"]
    return build(WORKLOADS / "musl" / "wasmtime.c", WORKLOADS_BUILT / "wasmtime-musl", flags, compiler)
