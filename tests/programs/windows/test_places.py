"""Programs and DLLs that cannot lie where they want to, and keep reheap.dll from lying where it wants to; and all of
them where Windows' randomisation would put them.

Wine 8 does not randomise addresses. A DLL is relocated when its place is taken, and images here are made to want one
place or another. A program cannot be relocated there: it is not started."""

import pathlib
import random
import re

from harness import COMMAND, MICROSOFTS, MICROSOFTS_PLACE, ROOT, Normalise, ProgramTest, fetch, main
import pe  # in the harness's path

PROBLEM = ROOT / "tests/programs/inputs/z3/bits.smt2"
LIBRARY = COMMAND.with_name("reheap.dll")
LIBRARYS_PLACE = pe.Image(LIBRARY.read_bytes()).base

# Where Windows puts images: a program at one of 2^17 multiples of 64 KiB, a DLL at one of 2^19 above those.
GRANULE = 0x10000
PROGRAMS = range(0x7FF6_0000_0000, 0x7FF8_0000_0000, GRANULE)
DLLS = range(0x7FF8_0000_0000, 0x7FFF_F000_0000, 0x100 * GRANULE)  # so far apart that none overlap
DRAWS = 4

LOADED = re.compile(rb'Loaded L"(\S+)" at ([0-9A-Fa-f]+): (\w+)')
TRACES = Normalise(r"^[0-9a-f]+:trace:.*\n", "", "which DLLs Wine loads")


class Places(ProgramTest):
    def setUp(self):
        super().setUp()
        self.need_emulator()  # which tells where images lie

    def moved(self, source: pathlib.Path, base: int) -> pathlib.Path:
        place = self.folder / "programs" / source.name
        place.parent.mkdir(exist_ok=True)
        image = pe.Image(source.read_bytes())
        image.move(base)
        place.write_bytes(image.bytes)
        return place

    def places_of(self, program: pathlib.Path, *arguments: str, **more) -> dict[str, int]:
        """Runs it both ways, and tells where the images lay on reheap."""
        result = self.compare([program, *arguments], normalise=(TRACES,), WINEDEBUG="-all,+loaddll", **more)
        found = LOADED.findall(result.errors)
        self.assertTrue(found, result.errors)
        # Of the launcher's and the program's DLLs the program's come last.
        return {path.decode().split("\\")[-1].lower(): int(address, 16) for path, address, _ in found}

    def solve(self, z3: pathlib.Path, **more) -> dict[str, int]:
        return self.places_of(z3, "-smt2", PROBLEM.name, **more,
                              prepare=lambda work: (work / PROBLEM.name).write_bytes(PROBLEM.read_bytes()))

    def test_program_in_the_librarys_place(self):
        places = self.solve(self.moved(fetch("z3") / "z3.exe", LIBRARYS_PLACE))
        self.assertEqual(places["z3.exe"], LIBRARYS_PLACE)
        self.assertNotEqual(places["reheap.dll"], LIBRARYS_PLACE)

    def test_program_with_its_heap_alone_in_the_librarys_place(self):
        self.runtime = b""
        places = self.places_of(self.moved(fetch("ninja") / "ninja.exe", LIBRARYS_PLACE), "--version")
        self.assertEqual(places["ninja.exe"], LIBRARYS_PLACE)
        self.assertNotEqual(places["reheap.dll"], LIBRARYS_PLACE)

    def test_runtime_wants_the_librarys_place(self):
        self.moved(fetch("ucrt-10.0.26100") / "ucrtbase.dll", LIBRARYS_PLACE)
        places = self.solve(self.place("z3", "z3.exe", libraries=("vcruntime-x86_64",)), WINEDLLOVERRIDES=MICROSOFTS)
        self.assertEqual(places["reheap.dll"], LIBRARYS_PLACE)
        self.assertNotEqual(places["ucrtbase.dll"], LIBRARYS_PLACE)

    def test_places_as_windows_picks_them(self):
        self.place("vcruntime-x86_64", "vcruntime140.dll", libraries=("vcruntime-x86_64",))
        sources = fetch("z3") / "z3.exe", LIBRARY, fetch("ucrt-10.0.26100") / "ucrtbase.dll"
        for draw in range(DRAWS):
            wanted = dict(zip((source.name for source in sources), (random.choice(PROGRAMS), *random.sample(DLLS, 2))))
            with self.subTest(draw=draw, wanted={name: hex(place) for name, place in wanted.items()}):
                program, library, _ = (self.moved(source, wanted[source.name]) for source in sources)
                self.options = ("--dll", str(library))
                places = self.solve(program, WINEDLLOVERRIDES=MICROSOFTS)
                self.assertEqual({name: places[name] for name in wanted}, wanted)

    def test_program_in_the_runtimes_place(self):
        """Where all of Microsoft's DLLs want to lie."""
        self.place("ucrt-10.0.26100", "ucrtbase.dll")
        self.place("vcruntime-x86_64", "vcruntime140.dll", libraries=("vcruntime-x86_64",))
        places = self.solve(self.moved(fetch("z3") / "z3.exe", MICROSOFTS_PLACE), WINEDLLOVERRIDES=MICROSOFTS)
        self.assertEqual(places["z3.exe"], MICROSOFTS_PLACE)
        self.assertNotIn(MICROSOFTS_PLACE, (places["ucrtbase.dll"], places["msvcp140.dll"]))


if __name__ == "__main__":
    main()
