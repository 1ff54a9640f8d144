"""`reheap doctor`: what it says about a program, and that it proves what it says."""

import json
import os
import shutil
import subprocess
import unittest

from support import *

REPORT = {"library": FAKE_LIBRARY, "malloc_served_by": FAKE_LIBRARY, "overridden": True, "version": None,
          "build": "release test", "hardened": False, "pid": 1,
          "options": {"decay_ms": 1000, "stats": "", "limit": "off"},
          "limit": {"soft": 0, "hard": 0, "held": 400000, "soft_met": 0, "hard_met": 0},
          "realm": {"base": "0x1000", "reserved": 1 << 30, "window": 0}}


def version() -> str:
    return call("--version").stdout.decode().split()[1]


class DoctorTest(CommandTest):
    def doctor(self, *words: str, status: int, library: str = "", env: dict | None = None, options: tuple = ()) -> dict:
        """The findings as JSON; the text must come to the same end."""
        named = [f"--library={library}"] if library else []
        # The command beside the real library finds it by itself.
        after = ["--", *words] if words else []
        done = call("doctor", "--json", *named, *options, *after, env=env or environment())
        self.assertEqual((done.returncode, done.stderr), (status, b""), done.stdout)
        findings = json.loads(done.stdout)
        self.assertEqual(findings["reached"], status == 0)
        text = call("doctor", *named, *options, *after, env=env or environment())
        self.assertEqual((text.returncode, text.stderr), (status, b""))
        last = text.stdout.decode(errors="replace").splitlines()[-1]
        self.assertRegex(last, r"^reached +yes$" if status == 0 else r"^reached +no: .")
        if status != 0:
            self.assertTrue(last.endswith(findings["reason"]), last)
        return findings

    def fake(self, *words: str, status: int, **changes) -> dict:
        """What it makes of a library that reports so."""
        report = REPORT | {"version": version()} | changes
        env = environment(FAKE_REPORT=json.dumps(report))
        return self.doctor(*words, status=status, library=FAKE_LIBRARY, env=env)


class WithTheLibrary(DoctorTest):
    """Under the library that was built, found beside the command."""

    def test_the_installation(self):
        findings = self.doctor(status=0)
        self.assertEqual(findings["command"]["version"], version())
        self.assertEqual(os.path.realpath(findings["command"]["path"]), os.path.realpath(COMMAND))
        self.assertIn(os.path.realpath(LIBRARY), [os.path.realpath(found["path"]) for found in findings["libraries"]])
        self.assertEqual(os.path.realpath(findings["report"]["malloc_served_by"]), os.path.realpath(LIBRARY))

    def test_a_program(self):
        findings = self.doctor(SHOW, "argument", status=0)
        program, report = findings["program"], findings["report"]
        self.assertEqual(program["chain"], [SHOW])
        self.assertEqual((program["architecture"], program["linkage"]), ("x86-64, 64-bit", "dynamic"))
        self.assertEqual(program["loader"], "/lib64/ld-linux-x86-64.so.2")
        self.assertTrue(program["ld_preload_honoured"] and report["overridden"])
        self.assertEqual(report["version"], version())
        self.assertEqual(set(REPORT), set(report))
        self.assertIn("base", report["realm"])

    def test_a_program_of_musl(self):
        findings = self.doctor(MUSL_PROGRAM, "reheap", status=0)
        self.assertIn("ld-musl", findings["program"]["loader"])
        self.assertTrue(findings["report"]["overridden"])
        # A child of the other C library is served as well, whoever is whose.
        for words in (("sh", "-c", f"{MUSL_PROGRAM} reheap"), (MUSL_PROGRAM, "reheap")):
            done = call("run", "--require", "--", *words)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"ok\n", b""))

    def test_the_hardened_build(self):
        report = self.doctor(SHOW, status=0, options=("--hardened", "--strict", "--quarantine=200"))["report"]
        self.assertTrue(report["hardened"] and report["options"]["strict"])
        self.assertEqual(report["options"]["quarantine"], 200)
        self.assertFalse(self.doctor(SHOW, status=0)["report"]["hardened"])

    def test_options_in_force(self):
        findings = self.doctor(SHOW, status=0, options=("--decay-ms=123",))
        self.assertEqual(findings["report"]["options"]["decay_ms"], 123)
        findings = self.doctor(SHOW, status=0, env=environment(REHEAP_DECAY_MS="321"))
        self.assertEqual(findings["report"]["options"]["decay_ms"], 321)

    def test_another_preload_comes_second(self):
        findings = self.doctor(SHOW, status=0, env=environment(LD_PRELOAD=JEMALLOC))
        self.assertEqual(os.path.realpath(findings["report"]["malloc_served_by"]), os.path.realpath(LIBRARY))

    def test_a_program_with_its_own_malloc(self):
        for words in ([OWN_MALLOC], ["command_own_malloc"]):
            findings = self.doctor(*words, status=1, env=environment(PATH=f"{PROGRAMS}:/usr/bin:/bin"))
            self.assertIn(OWN_MALLOC, findings["reason"])
            self.assertIn("jemalloc", findings["reason"])
            self.assertIn("brings its own malloc", findings["reason"])
            self.assertEqual(findings["program"]["carries"], ["jemalloc"])
            self.assertFalse(findings["report"]["overridden"])

    def test_a_relocated_installation(self):
        # bin/ and lib/ as cmake --install lays them out
        (self.folder / "bin").mkdir()
        (self.folder / "lib").mkdir()
        command = shutil.copy(COMMAND, self.folder / "bin/reheap")
        library = shutil.copy(LIBRARY, self.folder / "lib/libreheap.so")
        done = subprocess.run([command, "doctor", "--json"], capture_output=True, env=environment())
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(json.loads(done.stdout)["report"]["library"], str(library))

    def test_run_says_who_serves(self):
        done = call("run", "--verbose", "--", "true")
        self.assertEqual(done.returncode, 0)
        self.assertEqual(len(done.stderr.splitlines()), 1)
        self.assertIn(b"libreheap.so", done.stderr)


class WhatItFinds(DoctorTest):
    """Answers that the library that was built would not give."""

    def test_reached(self):
        findings = self.fake(SHOW, status=0)
        self.assertEqual(findings["report"] | {"version": None}, REPORT)

    def test_another_allocator_serves(self):
        findings = self.fake(SHOW, status=1, overridden=False, malloc_served_by=JEMALLOC)
        self.assertIn(JEMALLOC, findings["reason"])
        self.assertIn("jemalloc", findings["reason"])
        self.assertIn("not by libreheap", findings["reason"])

    def test_another_version(self):
        findings = self.fake(SHOW, status=1, version="9.8.7")
        self.assertIn("9.8.7", findings["reason"])
        self.assertIn(version(), findings["reason"])

    def test_a_library_that_is_another(self):
        trace = self.folder / "ran"
        findings = self.doctor("touch", str(trace), status=1, library=JEMALLOC)
        self.assertIn("is not libreheap", findings["reason"])
        self.assertFalse(trace.exists())
        findings = self.doctor(SHOW, status=1, library=FAKE_LIBRARY)
        self.assertIn("did not report", findings["reason"])

    def test_a_program_that_hangs_at_its_start(self):
        report = call("doctor", "--json", f"--library={FAKE_LIBRARY}", "--", SHOW, env=environment(FAKE_HANG="1"))
        self.assertEqual(report.returncode, 1)
        self.assertIn("hung", json.loads(report.stdout)["reason"])

    def test_a_report_that_is_none(self):
        findings = self.doctor(SHOW, status=1, library=FAKE_LIBRARY, env=environment(FAKE_REPORT="[1,"))
        self.assertIn("cannot be read", findings["reason"])

    def test_a_library_that_does_not_load(self):
        damaged = self.copy(FAKE_LIBRARY, "damaged.so")
        with open(damaged, "r+b") as file:  # needs a library that is not there
            content = file.read().replace(b"libc.so.6", b"lixx.so.6")
            file.seek(0)
            file.write(content)
        findings = self.doctor(SHOW, status=1, library=damaged)
        self.assertIn("damaged.so", findings["reason"])
        self.assertIn("lixx.so.6", findings["reason"])

    def test_the_program_does_not_run(self):
        trace = self.folder / "ran"
        self.fake("touch", str(trace), status=0)
        self.fake(self.file("script", f"#!/bin/sh\ntouch {trace}\n"), status=0)
        self.fake(self.file("plain", f"touch {trace}\n"), status=0)
        self.assertFalse(trace.exists())

    def test_static(self):
        findings = self.fake(SHOW_STATIC, status=1)
        self.assertEqual(findings["program"]["linkage"], "static")
        self.assertFalse(findings["program"]["ld_preload_honoured"])
        self.assertIn("statically linked", findings["reason"])
        self.assertNotIn("report", findings)

    @unittest.skipUnless(os.getuid() == 0, "only root can make a file set the id of somebody else")
    def test_setuid(self):
        program = self.copy(SHOW, "setuid")
        os.chown(program, 65534, 65534)
        os.chmod(program, 0o4755)
        findings = self.fake(program, status=1)
        self.assertIn("setuid", findings["reason"])

    def test_another_c_library(self):
        findings = self.fake(SHOW_FOREIGN, status=1)
        self.assertIn("neither glibc's nor musl's", findings["reason"])
        self.assertTrue(findings["program"]["loader"].endswith("ld-other-test.so.1"))

    def test_another_architecture(self):
        foreign = self.copy(SHOW, "foreign")
        with open(foreign, "r+b") as file:  # e_machine: AArch64
            file.seek(18)
            file.write(b"\xb7\x00")
        findings = self.fake(foreign, status=1)
        self.assertIn("AArch64, 64-bit", findings["reason"])
        with open(foreign, "r+b") as file:  # a big-endian SPARC's program
            file.seek(5)
            file.write(b"\x02")
            file.seek(16)
            file.write(b"\x00\x02\x00\x2b")
        self.assertIn("big-endian", self.fake(foreign, status=1)["reason"])

    def test_scripts(self):
        script = self.file("script", f"#!{SHOW} word\n")
        self.assertEqual(self.fake(script, status=0)["program"]["chain"], [script, SHOW])
        by_env = self.file("by_env", "#!/usr/bin/env command_show\n")
        report = json.dumps(REPORT | {"version": version()})
        findings = self.doctor(by_env, status=0, library=FAKE_LIBRARY,
                               env=environment(FAKE_REPORT=report, PATH=f"{PROGRAMS}:/usr/bin:/bin"))
        self.assertEqual(findings["program"]["chain"], [by_env, "/usr/bin/env", SHOW])
        shell = self.file("shell", "exit 0\n")
        self.assertEqual(self.fake(shell, status=0)["program"]["chain"], [shell, "/bin/sh"])

    def test_a_realm_whose_length_has_32_bits_of_zero(self):
        for reserved, said in ((0, b"not reserved"), (1 << 32, b"reserved 4 GiB")):
            realm = {"base": "0x1000", "reserved": reserved, "window": 1 << 32}
            report = json.dumps(REPORT | {"version": version(), "realm": realm})
            done = call("doctor", f"--library={FAKE_LIBRARY}", "--", SHOW, env=environment(FAKE_REPORT=report))
            self.assertIn(said, done.stdout)

    def test_elf_magic_and_no_more(self):
        findings = self.fake(self.file("cut", "\x7fELF\x02\x01\x01"), status=1)
        self.assertIn("no ELF program that can be read", findings["reason"])

    def test_names_that_are_no_utf8(self):
        folder = os.fsencode(self.folder) + b"/gr\xfcn"
        os.mkdir(folder)
        program = os.fsdecode(shutil.copy(os.fsencode(SHOW), folder + b"/show"))
        for library in (FAKE_LIBRARY, ""):
            report = json.dumps(REPORT | {"version": version()})
            findings = self.doctor(program, status=0, library=library, env=environment(FAKE_REPORT=report))
            self.assertIn("gr\ufffdn", findings["program"]["path"])

    def test_a_missing_command(self):
        done = call("doctor", f"--library={FAKE_LIBRARY}", "--", "no-such-command-here")
        self.assertEqual(done.returncode, 127)
        self.assert_one_line(done.stderr, "no-such-command-here")

    def test_a_missing_library(self):
        lonely = self.copy(COMMAND, "lonely")
        done = subprocess.run([lonely, "doctor"], capture_output=True, env=environment())
        self.assertEqual(done.returncode, 125)
        self.assert_one_line(done.stderr, "cannot find libreheap.so")

    def test_it_leaves_nothing_behind(self):
        (self.folder / "tmp").mkdir()
        call("doctor", f"--library={FAKE_LIBRARY}", "--", SHOW, env=environment(TMPDIR=str(self.folder / "tmp")))
        self.assertEqual(os.listdir(self.folder / "tmp"), [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
