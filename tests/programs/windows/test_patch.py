"""Programs as others built them, patched: they do the same, on reheap, without a launcher; and come back byte for
byte."""

import json
import pathlib

from harness import COMMAND, LINE, ROOT, Given, ProgramTest, main
import pe  # in the harness's path

PROBLEM = ROOT / "tests/programs/inputs/z3/bits.smt2"
NINJA = "".join(f"build out{number}: phony in\n" for number in range(2000)) + "default " + \
    " ".join(f"out{number}" for number in range(2000)) + "\n"


class Patch(ProgramTest):
    def ask(self, *words, status: int = 0) -> bytes:
        result = self.execute([COMMAND, *words], Given())
        self.assertEqual(result.status, status, result.errors)
        return result.output + result.errors

    def patched(self, program: pathlib.Path, *options: str) -> pathlib.Path:
        result = program.with_name("patched-" + program.name)
        told = self.ask("patch", program, "-o", result, "--copy-dll", *options)
        self.assertIn(b"patched; reheap.dll must lie beside it", told)
        return result

    def assert_well_formed(self, before: bytes, after: bytes) -> None:
        plain, patched = pe.Image(before), pe.Image(after)
        self.assertEqual(patched.checksum(), patched.right_checksum())
        self.assertEqual((patched.directory(pe.SIGNATURE), patched.directory(pe.BOUND_IMPORTS)), ((0, 0), (0, 0)))
        # At their place, and untouched: everything behind the headers is.
        self.assertEqual(patched.directory(pe.RESOURCES), plain.directory(pe.RESOURCES))
        self.assertEqual(after[4096:len(before)], before[4096:])

    def run_both(self, program: pathlib.Path, patched: pathlib.Path, *words: str, prepare) -> None:
        plain = self.execute([program, *words], Given(prepare=prepare))
        statistics = self.folder / "statistics.json"
        variables = {"REHEAP_VERBOSE": "1", "REHEAP_STATS": str(statistics)}
        result = self.execute([patched, *words], Given(prepare=prepare, variables=variables))
        self.assertEqual(plain.status, 0, plain.errors)
        self.assertEqual(result.status, 0, result.errors)
        lines = LINE.findall(result.errors)
        [report] = [json.loads(line) for line in lines if line.startswith(b"{")]
        self.assertTrue(report["library"].endswith("\\programs\\reheap.dll"), report)
        self.assertTrue(any(b"replaced heap (" in line for line in lines), lines)
        self.assertGreater(json.loads(statistics.read_bytes())["slow_paths"]["refill"], 0)
        self.assert_same_bytes("stdout", plain.output, result.output)
        self.assert_same_bytes("stderr", plain.errors, LINE.sub(b"", result.errors))
        self.assertGreater(len(plain.output), 20)

    def take_back(self, program: pathlib.Path, patched: pathlib.Path) -> None:
        before = program.read_bytes()
        self.assert_well_formed(before, patched.read_bytes())
        self.assertIn(b"byte for byte", self.ask("unpatch", patched))
        self.assertTrue(patched.read_bytes() == before)

    def test_control_flow_guard(self):
        program = self.place("z3", "z3.exe")
        patched = self.patched(program)
        self.run_both(program, patched, "-smt2", PROBLEM.name,
                      prepare=lambda work: (work / PROBLEM.name).write_bytes(PROBLEM.read_bytes()))
        self.take_back(program, patched)

    def test_a_runtime_linked_in(self):
        program = self.place("ninja", "ninja.exe")
        patched = self.patched(program)
        self.run_both(program, patched, "-t", "targets", "all",
                      prepare=lambda work: (work / "build.ninja").write_text(NINJA))
        self.take_back(program, patched)

    def test_a_signed_one(self):
        program = self.place("cmake", "bin/cmake.exe")
        refused = self.ask("patch", program, "-o", program.with_name("none.exe"), status=125)
        self.assertIn(b"it is signed", refused)
        self.assertFalse(program.with_name("none.exe").exists())
        patched = self.patched(program, "--allow-unsigned")
        self.run_both(program, patched, "-E", "sha512sum", "some",
                      prepare=lambda work: (work / "some").write_bytes(bytes(1 << 20)))
        self.take_back(program, patched)

    def test_nothing_to_gain(self):
        program = self.place("esbuild", "esbuild.exe")
        self.assertIn(b"nothing to gain", self.ask("patch", program, "--allow-unsigned", status=125))

    def test_what_the_doctor_tells(self):
        for item, program, told in (
                ("ninja", "ninja.exe", b"linked in, on the OS's heap, by Microsoft's linker 14."),
                ("z3", "z3.exe", b"flow guard    yes")):
            findings = self.ask("doctor", "--", self.place(item, program))
            self.assertIn(told, findings)
            self.assertIn(b"inside        ntdll.dll at ", findings)
        esbuild = self.ask("doctor", "--", self.place("esbuild", "esbuild.exe"), status=1)
        self.assertIn(b"kind          Go", esbuild)
        self.assertIn(b"nothing to gain", esbuild)


if __name__ == "__main__":
    main()
