"""Modules of TypeScript that import each other, badly formatted, for programs that bundle, check or format such."""

import pathlib

# KIND and BELOW are filled in.
MODULE = (pathlib.Path(__file__).parent / "inputs" / "store.ts").read_text()


def write_modules(folder: pathlib.Path, count: int) -> None:
    """module1.ts to the last; each imports two that come after it, and the first prints what all together find."""
    for number in range(1, count + 1):
        below = [other for other in (2 * number, 2 * number + 1) if other <= count]
        imports = "".join(f"import {{sum as sum{other}}} from './module{other}'\n" for other in below)
        calls = "".join(f" + sum{other}(values)" for other in below)
        text = imports + MODULE.replace("KIND", str(number)).replace("BELOW", calls)
        (folder / f"module{number}.ts").write_text(text)
    with (folder / "module1.ts").open("a") as first:
        first.write("console.log(sum([1, 2, 3]))\n")
