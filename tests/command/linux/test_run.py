"""`reheap run`: the program becomes the process, exactly as it would without."""

import os
import pty
import shutil
import signal
import subprocess
import tempfile
import unittest

from support import *

SOVERSION = os.path.basename(LIBRARY).split(".")[2]


class PassesThrough(CommandTest):
    def test_every_exit_status(self):
        # One shell starts them all: 256 times the command, on its short way.
        script = ('for s in $(seq 0 255); do "$1" run "--library=$2" -- sh -c "exit $s"; '
                  '[ $? = $s ] || { echo "$s"; exit 1; }; done')
        done = subprocess.run(["sh", "-c", script, "sh", COMMAND, FAKE_LIBRARY], capture_output=True, env=environment())
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"", b""))

    def test_exit_status_on_both_ways(self):
        for options in WAYS.values():
            with self.subTest(options=options):
                self.assertEqual(run("sh", "-c", "exit 37", options=options).returncode, 37)

    def test_death_by_signal(self):
        for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT):
            with self.subTest(signal=number):
                done = run("sh", "-c", f"ulimit -c 0; kill -{int(number)} $$")
                self.assertEqual(done.returncode, -number)

    def test_signals_sent_to_it(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.subTest(signal=number):
                program = start("run", f"--library={FAKE_LIBRARY}", "--", "sh", "-c",
                                "trap 'echo caught; exit 9' INT TERM HUP; echo ready; while :; do sleep 0.01; done",
                                stdout=subprocess.PIPE)
                self.assertEqual(program.stdout.readline(), b"ready\n")
                program.send_signal(number)
                self.assertEqual((program.wait(30), program.stdout.read()), (9, b"caught\n"))
                program.stdout.close()

    def test_an_uncaught_signal_ends_it(self):
        program = start("run", f"--library={FAKE_LIBRARY}", "--", "sleep", "60")
        program.send_signal(signal.SIGINT)
        self.assertEqual(program.wait(30), -signal.SIGINT)

    def test_pid_and_parent(self):
        program = start("run", f"--library={FAKE_LIBRARY}", "--", SHOW, stdout=subprocess.PIPE)
        seen = shown(program.communicate(timeout=30)[0])
        self.assertEqual((seen.pid, seen.parent), (program.pid, os.getpid()))

    def test_arguments_are_exact(self):
        odd = ["", " ", "--", "--help", "--library=/x", "-", "*", "a b", "$(x)", "\n", "'\"", "é", "=", "++",
               "x" * 100000]
        for options in WAYS.values():
            with self.subTest(options=options):
                done = run(SHOW, *odd, options=options)
                self.assertEqual(shown(done.stdout).arguments, [word.encode() for word in [SHOW, *odd]])

    def test_argv0_is_the_word_given(self):
        done = run("command_show", env=environment(PATH=str(PROGRAMS)))
        self.assertEqual(shown(done.stdout).arguments, [b"command_show"])

    def test_environment_is_exact(self):
        given = environment(EMPTY="", ODD="a=b\nc", LD_PRELOADED="no", LD_PRELOA="no")
        for options in WAYS.values():
            with self.subTest(options=options):
                seen = shown(run(SHOW, options=options, env=given).stdout).variables
                expected = {os.fsencode(name): os.fsencode(value) for name, value in given.items()}
                expected |= {b"LD_PRELOAD": FAKE_LIBRARY.encode(), b"REHEAP_DECAY_MS": b"1000"}
                self.assertEqual(seen, expected)

    def test_an_empty_environment(self):
        seen = shown(run(SHOW, env={}).stdout).variables
        self.assertEqual(seen, {b"LD_PRELOAD": FAKE_LIBRARY.encode()})

    def test_standard_streams(self):
        data = bytes(range(256)) * 4096
        self.assertEqual(run("cat", input=data).stdout, data)
        done = run("sh", "-c", "echo out; echo err >&2")
        self.assertEqual((done.stdout, done.stderr), (b"out\n", b"err\n"))

    def test_descriptors_masks_and_limits_are_the_callers(self):
        look = ("import os, resource; print(sorted(os.listdir('/proc/self/fd')),"
                "[line for line in open('/proc/self/status') if line.startswith(('SigBlk', 'SigIgn', 'SigCgt'))],"
                "resource.getrlimit(resource.RLIMIT_NOFILE), os.getpgid(0) == os.getpgid(os.getppid()))")

        def prepare():
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})

        words = ["/usr/bin/python3", "-I", "-c", look]
        plain = subprocess.run(words, capture_output=True, preexec_fn=prepare, env=environment())
        self.assertEqual(plain.returncode, 0, plain.stderr)
        for options in WAYS.values():
            with self.subTest(options=options):
                under = run(*words, options=options, preexec_fn=prepare)
                self.assertEqual(under.stdout, plain.stdout)

    def test_the_terminal_stays(self):
        leader, follower = pty.openpty()
        program = start("run", f"--library={FAKE_LIBRARY}", "--", "sh", "-c", "test -t 0 && test -t 1 && tty",
                        stdin=follower, stdout=follower)
        name = os.ttyname(follower)
        os.close(follower)
        self.assertEqual(program.wait(30), 0)
        self.assertEqual(os.read(leader, 100).strip().decode(), name)
        os.close(leader)

    def test_children_have_it_too(self):
        done = run("sh", "-c", f"sh -c {SHOW}; exit 0")
        self.assertEqual(shown(done.stdout).variables[b"LD_PRELOAD"], FAKE_LIBRARY.encode())


class TheLibrary(CommandTest):
    def preload(self, value: str, library: str = FAKE_LIBRARY) -> str:
        done = run(SHOW, library=library, env=environment(LD_PRELOAD=value))
        return shown(done.stdout).variables[b"LD_PRELOAD"].decode()

    def test_it_comes_before_what_is_preloaded_already(self):
        other = self.copy(FAKE_LIBRARY, "other.so")
        self.assertEqual(self.preload(other), f"{FAKE_LIBRARY}:{other}")
        self.assertEqual(self.preload(""), FAKE_LIBRARY)

    def test_it_is_not_named_twice(self):
        other = self.copy(FAKE_LIBRARY, "other.so")
        for value in (FAKE_LIBRARY, f"{FAKE_LIBRARY}:{other}", f"{FAKE_LIBRARY} {other}"):
            self.assertEqual(self.preload(value), value)
        longer = self.copy(FAKE_LIBRARY, "longer.so")
        shorter = longer[:-1]
        os.rename(longer, shorter)
        os.link(shorter, longer)
        self.assertEqual(self.preload(longer, shorter), f"{shorter}:{longer}")

    def test_another_of_ours_is_taken_out(self):
        first, second = (self.copy(FAKE_LIBRARY, name) for name in ("first.so", "second.so"))
        ours = [self.copy(FAKE_LIBRARY, name) for name in ("libreheap.so", "libreheap-hardened.so", "libreheap.so.0")]
        link = str(self.folder / "link.so")
        os.symlink(ours[0], link)
        for words in ([ours[0]], [*ours, link, FAKE_LIBRARY], ["libreheap.so", "/usr/$LIB/libreheap-hardened.so.0"]):
            for separator in ":", " ", "::":
                with self.subTest(words=words, separator=separator):
                    self.assertEqual(self.preload(separator.join(words)), FAKE_LIBRARY)
                    between = separator.join([first, *words, second])
                    self.assertEqual(self.preload(between), f"{FAKE_LIBRARY}:{first}{separator[0]}{second}")

    def test_what_is_only_called_alike_stays(self):
        for name in ("libreheap-record.so", "libreheap.so2", "mylibreheap.so", "libreheap.so.0/other.so", "libreheap"):
            self.assertEqual(self.preload(f"/no/such/{name}"), f"{FAKE_LIBRARY}:/no/such/{name}")

    def test_another_architectures_stays(self):
        # Programs of that architecture, which the program starts, cannot load this one.
        other = self.copy(FAKE_LIBRARY, "libreheap.so")
        machine_at = 18
        with open(other, "r+b") as file:
            file.seek(machine_at)
            file.write(b"\xb7\x00")  # EM_AARCH64
        self.assertEqual(self.preload(other), f"{FAKE_LIBRARY}:{other}")

    def test_one_within_another(self):
        inner = self.copy(FAKE_LIBRARY, "libreheap-hardened.so")
        done = call("run", f"--library={LIBRARY}", "--decay-ms=5", "--stats=outer.json", "--", COMMAND, "run",
                    f"--library={inner}", "--decay-ms=7", "--limit=1G", "--", SHOW, cwd=self.folder)
        seen = {name: value for name, value in shown(done.stdout).variables.items()
                if name.startswith((b"REHEAP_", b"LD_"))}
        self.assertEqual(seen, {b"LD_PRELOAD": os.fsencode(inner), b"REHEAP_DECAY_MS": b"7", b"REHEAP_LIMIT": b"1G",
                                b"REHEAP_STATS": os.fsencode(self.folder / "outer.json")})

    def test_it_is_found_beside_the_command(self):
        for folder in ("lib", "lib64", "lib/x86_64-linux-gnu"):
            with self.subTest(folder=folder):
                root = self.folder / folder.replace("/", "_")
                (root / "bin").mkdir(parents=True)
                (root / folder).mkdir(parents=True)
                command = root / "bin" / "reheap"
                shutil.copy(COMMAND, command)
                library = root / folder / "libreheap.so"
                shutil.copy(FAKE_LIBRARY, library)
                link = root / "link"
                link.symlink_to(command)
                for path in (command, link):
                    done = subprocess.run([path, "run", "--", SHOW], capture_output=True, env=environment())
                    self.assertEqual(shown(done.stdout).variables[b"LD_PRELOAD"], os.fsencode(library), done.stderr)

    def test_it_is_found_where_programs_find_it_too(self):
        # without the name that it is linked by; with both, that one may be of another version
        (self.folder / "lib").mkdir()
        (self.folder / "bin").mkdir()
        command = shutil.copy(COMMAND, self.folder / "bin/reheap")
        for name, hardened in (("libreheap", []), ("libreheap-hardened", ["--hardened"])):
            library = self.folder / f"lib/{name}.so.{SOVERSION}"
            shutil.copy(FAKE_LIBRARY, library)
            for _ in range(2):
                with self.subTest(library=library.name):
                    done = subprocess.run([command, "run", *hardened, "--", SHOW], capture_output=True,
                                          env=environment())
                    self.assertEqual(shown(done.stdout).variables[b"LD_PRELOAD"], os.fsencode(library), done.stderr)
                shutil.copy(FAKE_LIBRARY, library.with_suffix(""))

    def test_the_environment_can_name_it(self):
        done = call("run", "--", SHOW, env=environment(REHEAP_LIBRARY=FAKE_LIBRARY))
        self.assertEqual(shown(done.stdout).variables[b"LD_PRELOAD"], FAKE_LIBRARY.encode())

    def test_a_relative_name_becomes_absolute(self):
        done = run(SHOW, library=os.path.basename(FAKE_LIBRARY), cwd=PROGRAMS)
        self.assertEqual(shown(done.stdout).variables[b"LD_PRELOAD"], FAKE_LIBRARY.encode())

    def test_a_file_named_from_a_folder_that_is_gone_is_an_error(self):
        for ways in WAYS.values():
            gone = tempfile.mkdtemp()
            done = subprocess.run(
                ["sh", "-c", 'rmdir "$PWD" && exec "$@"', "sh", COMMAND, "run", "--stats=x.json", *ways, "--", SHOW],
                cwd=gone, capture_output=True, env=environment(REHEAP_LIBRARY=FAKE_LIBRARY))
            self.assertEqual((done.returncode, done.stdout), (125, b""))
            self.assert_one_line(done.stderr, "--stats=x.json", "name the file by a full path")

    def test_output_that_is_lost_is_an_error(self):
        for words in (["doctor"], ["doctor", "--json"], ["--help"], ["--version"], ["completion", "bash"]):
            with self.subTest(words=words), open("/dev/full", "wb") as full:
                done = subprocess.run([COMMAND, *words], stdout=full, stderr=subprocess.PIPE, env=environment())
                self.assertEqual(done.returncode, 125)
                self.assert_one_line(done.stderr, "standard output cannot be written")

    def test_the_hardened_one_lies_beside_it(self):
        for ways in WAYS.values():
            done = call("run", "--hardened", *ways, "--", SHOW, env=environment(REHEAP_LIBRARY=FAKE_LIBRARY))
            library = os.fsdecode(shown(done.stdout).variables[b"LD_PRELOAD"])
            self.assertEqual(os.path.basename(library), f"libreheap-hardened.so.{SOVERSION}")
            self.assertTrue(os.path.isfile(library))

    def test_the_hardened_one_and_another_are_an_error(self):
        done = call("run", "--hardened", f"--library={FAKE_LIBRARY}", "--", "true")
        self.assertEqual(done.returncode, 125)
        self.assert_one_line(done.stderr, "--hardened and --library", "leave one of them out")

    def test_a_missing_hardened_one_is_an_error(self):
        lonely = self.copy(COMMAND, "lonely")
        done = subprocess.run([lonely, "run", "--hardened", "--", "true"], capture_output=True, env=environment())
        self.assertEqual(done.returncode, 125)
        self.assert_one_line(done.stderr, "cannot find libreheap-hardened.so")

    def test_a_missing_one_is_an_error(self):
        lonely = self.copy(COMMAND, "lonely")
        done = subprocess.run([lonely, "run", "--", "true"], capture_output=True, env=environment())
        self.assertEqual(done.returncode, 125)
        self.assert_one_line(done.stderr, "cannot find libreheap.so", "./dev build", "--library", "REHEAP_LIBRARY")

    def test_a_wrong_one_is_an_error(self):
        text = self.file("text.so", "no library\n")
        for wrong in ("/no/such.so", text, SHOW_STATIC):
            with self.subTest(library=wrong):
                done = run("true", library=wrong)
                self.assertEqual(done.returncode, 125)
                self.assert_one_line(done.stderr, "--library", wrong, "not a shared library")

    def test_a_path_that_cannot_be_preloaded_is_an_error(self):
        for name in ("a b.so", "a:b.so"):
            library = self.copy(FAKE_LIBRARY, name)
            done = run("true", library=library)
            self.assertEqual(done.returncode, 125)
            self.assert_one_line(done.stderr, "space or a colon", library)
            link = str(self.folder / "link.so")
            os.symlink(library, link)
            self.assertEqual(run("true", library=link).returncode, 0)
            os.unlink(link)

    def test_options_become_its_environment(self):
        done = run(SHOW, options=("--stats=out.json", "--verbose", "--decay-ms=0", "--window=8G", "--window-at=low",
                                  "--misuse-json=misuse.json", "--sample-guard=1000"), cwd=self.folder)
        seen = shown(done.stdout).variables
        self.assertEqual({name: value for name, value in seen.items() if name.startswith(b"REHEAP_")}, {
            b"REHEAP_STATS": os.fsencode(self.folder / "out.json"), b"REHEAP_VERBOSE": b"1", b"REHEAP_DECAY_MS": b"0",
            b"REHEAP_WINDOW": b"8G", b"REHEAP_WINDOW_AT": b"low", b"REHEAP_SAMPLE_GUARD": b"1000",
            b"REHEAP_MISUSE_JSON": os.fsencode(self.folder / "misuse.json")})

    def test_statistics_without_a_file_go_to_stderr(self):
        for words in (["--stats"], ["--stats", "--decay-ms", "5"]):
            seen = shown(run(SHOW, options=words).stdout).variables
            self.assertEqual(seen[b"REHEAP_STATS"], b"1")

    def test_a_file_that_is_a_switch_is_none(self):
        # What they mean the library knows. The other words are mistakes (Mistakes.test_options).
        for option, variable in (("--stats", b"REHEAP_STATS"), ("--profile", b"REHEAP_PROFILE")):
            for value, given in (("0", b"0"), ("off", b"off"), ("Off", b"Off"),
                                 ("./0", os.fsencode(f"{self.folder}/./0")), ("10", os.fsencode(self.folder / "10"))):
                seen = shown(run(SHOW, options=(f"{option}={value}",), cwd=self.folder).stdout).variables
                self.assertEqual(seen[variable], given)

    def test_an_option_wins_over_the_environment(self):
        done = run(SHOW, options=("--decay-ms=7",), env=environment(REHEAP_DECAY_MS="9"))
        self.assertEqual(shown(done.stdout).variables[b"REHEAP_DECAY_MS"], b"7")


class WhatCannotBeReached(CommandTest):
    def assert_unchanged(self, program: str, *reason: str, **more):
        done = run(program, **more)
        self.assertEqual(done.returncode, 0)
        self.assert_one_line(done.stderr, "cannot be reached", *reason)
        self.assertNotIn(b"LD_PRELOAD", shown(done.stdout).variables)
        required = run(program, options=("--require",), **more)
        self.assertEqual((required.returncode, required.stdout), (125, b""))
        self.assert_one_line(required.stderr, "cannot be reached", "--require", *reason)
        quiet = run(program, options=("--quiet",), **more)
        self.assertEqual((quiet.returncode, quiet.stderr), (0, b""))

    def test_static(self):
        done = run(SHOW_STATIC, "a")
        self.assertEqual(done.returncode, 0)
        self.assert_one_line(done.stderr, SHOW_STATIC, "statically linked", "programs it starts on reheap")
        self.assertEqual(shown(done.stdout).arguments, [SHOW_STATIC.encode(), b"a"])
        # Harmless to it, and what it starts is reached.
        self.assertIn(b"LD_PRELOAD", shown(done.stdout).variables)
        self.assertEqual(run(SHOW_STATIC, options=("--require",)).returncode, 125)

    @unittest.skipUnless(os.getuid() == 0, "only root can make a file set the id of somebody else")
    def test_setuid_and_setgid(self):
        for bit, reason in ((0o4755, "setuid"), (0o2755, "setgid")):
            program = self.copy(SHOW, reason)
            os.chown(program, 65534, 65534)
            os.chmod(program, bit)
            self.assert_unchanged(program, "it is " + reason, "ignores LD_PRELOAD")
        # To its own owner it is a program like any other.
        os.chown(program, 0, 0)
        self.assertEqual(run(program).stderr, b"")

    @unittest.skipUnless(os.getuid() == 0, "only root can give file capabilities")
    def test_file_capabilities(self):
        program = self.copy(SHOW, "capable")
        subprocess.run(["/sbin/setcap", "cap_net_raw+ep", program], check=True)
        for folder in (self.folder, *self.folder.parents):
            if not os.stat(folder).st_mode & 0o001:
                self.skipTest(f"{folder} is closed to other users")
        self.assert_unchanged(program, "file capabilities", user=65534, group=65534, extra_groups=[])
        self.assertEqual(run(program).stderr, b"", "root gains nothing by them")

    def test_setuid_as_installed(self):
        for program in ("/usr/bin/su", "/usr/bin/passwd"):
            if os.path.exists(program) and os.getuid() != 0:
                done = run(program, "--help")
                self.assert_one_line(done.stderr.splitlines(True)[0], program, "setuid")

    def test_another_c_library(self):
        loader = PROGRAMS / "ld-other-test.so.1"
        if not loader.exists():
            os.symlink("/lib64/ld-linux-x86-64.so.2", loader)
        self.assert_unchanged(SHOW_FOREIGN, "neither glibc's nor musl's")

    def test_another_architecture(self):
        program = str(self.folder / "show32")
        made = subprocess.run([os.environ.get("CC", "cc"), "-m32", SHOW_SOURCE, "-o", program], capture_output=True)
        if made.returncode != 0:
            self.skipTest("the compiler makes no 32-bit programs (Debian: gcc-multilib)")
        self.assert_unchanged(program, "x86, 32-bit", "x86-64, 64-bit")


class Scripts(CommandTest):
    def test_interpreters(self):
        inner = self.file("inner.sh", f"#!/bin/sh -e\nexec {SHOW} \"$0\" \"$@\"\n")
        outer = self.file("outer", f"#!{inner} one word\n")
        for program, expected in ((inner, [inner, "x"]), (outer, [inner, "one word", outer, "x"])):
            with self.subTest(program=program):
                done = run(program, "x")
                self.assertEqual(done.stderr, b"")
                seen = shown(done.stdout)
                self.assertEqual(seen.arguments[1:], [word.encode() for word in expected])
                self.assertIn(b"LD_PRELOAD", seen.variables)

    def test_a_script_without_interpreter_is_the_shells(self):
        script = self.file("plain", f"exec {SHOW} \"$0\" \"$@\"\n")
        for options in WAYS.values():
            done = run(script, "x y", options=options)
            self.assertEqual((done.returncode, done.stderr), (0, b""))
            self.assertEqual(shown(done.stdout).arguments[1:], [script.encode(), b"x y"])
        for text, said in (("\n\necho said\n", b"said\n"), ("", b"")):  # whose first line is empty
            done = run(self.file("empty", text))
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, said, b""))

    def test_a_static_interpreter(self):
        script = self.file("script", f"#!{SHOW_STATIC}\n")
        self.assert_one_line(run(script).stderr, SHOW_STATIC, "statically linked")

    def test_a_missing_interpreter(self):
        done = run(self.file("script", "#!/no/such/interpreter\n"))
        self.assertEqual(done.returncode, 127)
        self.assert_one_line(done.stderr, "/no/such/interpreter", "missing")

    def test_a_first_line_longer_than_the_kernel_reads(self):
        """Of which the kernel takes 256 bytes: a name that ends there is followed, one that does not is no program."""
        for length, status, said in ((253, 127, "missing"), (254, 126, "longer"), (400, 126, "longer")):
            with self.subTest(length=length):
                done = run(self.file("script", "#!/" + (length - 1) * "a"))
                self.assertEqual(done.returncode, status)
                self.assert_one_line(done.stderr, said)
        done = run(self.file("script", f"#!{SHOW}{' ' * 400}\n"))
        self.assertEqual(done.returncode, 0)

    def test_a_carriage_return(self):
        done = run(self.file("script", "#!/bin/sh\r\nexit 0\r\n"))
        self.assertEqual(done.returncode, 127)
        self.assert_one_line(done.stderr, "/bin/sh", "carriage return")

    def test_endless_interpreters(self):
        loop = str(self.folder / "loop")
        self.file("loop", f"#!{loop}\n")
        done = run(loop)
        self.assertEqual(done.returncode, 126)
        self.assert_one_line(done.stderr, "nested deeper")


class Mistakes(CommandTest):
    def assert_refused(self, words: list[str], status: int, *parts: str, **more):
        with self.subTest(words=words):
            done = call(*words, **more)
            self.assertEqual((done.returncode, done.stdout), (status, b""))
            self.assert_one_line(done.stderr, *parts)

    def test_a_missing_command(self):
        under = ["run", f"--library={FAKE_LIBRARY}", "--"]
        self.assert_refused([*under, "no-such-command-here"], 127, "no-such-command-here", "no such command on PATH")
        self.assert_refused([*under, "/no/such"], 127, "/no/such", "no such file")
        self.assert_refused([*under, ""], 127, "empty")

    def test_not_executable(self):
        under = ["run", f"--library={FAKE_LIBRARY}", "--"]
        text = self.file("text", "hello\n", 0o644)
        self.assert_refused([*under, text], 126, text, "chmod +x")
        self.assert_refused([*under, "text"], 126, text, "chmod +x", env=environment(PATH=str(self.folder)))
        self.assert_refused([*under, str(self.folder)], 126, "directory")
        damaged = self.copy(SHOW, "damaged")
        with open(damaged, "r+b") as file:
            file.truncate(80)
        self.assert_refused([*under, damaged], 126, damaged)

    def test_path_is_searched_to_the_end(self):
        self.file("command_show", "not executable", 0o644)
        done = run("command_show", env=environment(PATH=f"/no/such:{self.folder}:{PROGRAMS}"))
        self.assertEqual(shown(done.stdout).arguments, [b"command_show"])
        done = run("command_show", env=environment(PATH=":/no/such"), cwd=PROGRAMS)
        self.assertEqual(done.returncode, 0)

    def test_a_missing_loader(self):
        program = str(self.folder / "show")
        subprocess.run([os.environ.get("CC", "cc"), SHOW_SOURCE, "-o", program, "-Wl,--dynamic-linker=/no/ld-linux.so"],
                       check=True)
        self.assert_refused(["run", f"--library={FAKE_LIBRARY}", "--", program], 127, "/no/ld-linux.so", "missing")

    def test_the_separator(self):
        self.assert_refused(["run", "ls", "-l"], 125, "put -- before the program", "reheap run -- ls")
        self.assert_refused(["doctor", "ls"], 2, "put -- before the program", "reheap doctor -- ls")
        self.assert_refused(["run"], 125, "say what to run")
        self.assert_refused(["run", "--"], 125, "say what to run")
        self.assert_refused(["doctor", "--"], 2, "say what to examine")

    def test_options(self):
        self.assert_refused(["run", "--frob", "--", "ls"], 125, "--frob", "reheap run --help")
        self.assert_refused(["doctor", "--frob"], 2, "--frob", "reheap doctor --help")
        for value in ("x", "-1", "600001", "", "1.5"):
            self.assert_refused(["run", f"--decay-ms={value}", "--", "ls"], 125, "--decay-ms", "0..600000")
        for value in ("x", "1000000001", "1M"):
            self.assert_refused(["run", f"--sample-guard={value}", "--", "ls"], 125, "--sample-guard", "0..1000000000")
        for value in ("much", "5%,", "soft:", "1GB", "auto,", "50%%", "hard:soft:1G", "1", "1023K", "0%", "101%",
                      "0.5%", "1e9%", " ", "1M ", "99999999999999999999", "99999999999G", "auto,auto", "end",
                      "auto,1G", "soft:2G,hard:1G"):
            self.assert_refused(["run", f"--limit={value}", "--", "ls"], 125, "--limit", "a size of 1M or more")
        for words in (["--limit="], ["--limit"]):
            self.assert_refused(["run", *words, "--", "ls"], 125,
                                "--limit needs a value: off|auto|[soft:]SIZE|N%[,end];")
        for value in ("many", "0", "1M", "65T", "16777216T"):
            self.assert_refused(["run", f"--window={value}", "--", "ls"], 125, "--window", "16M..64T")
        for value in ("0", "2T", "1X", "-1"):
            self.assert_refused(["run", f"--profile-rate={value}", "--", "ls"], 125, "--profile-rate", "1..1T")
        for value in ("high", "0x", "0x0", "0x1000", "0x10002000"):
            self.assert_refused(["run", f"--window-at={value}", "--", "ls"], 125, "--window-at", "low|image|0xADDR")
        self.assert_refused(["run", "--memory-tags=on", "--", "ls"], 125, "--memory-tags", "sync|async|off")
        for word in ("--stats=on", "--stats=Yes", "--profile=1", "--profile=no", "--misuse-json=true"):
            self.assert_refused(["run", word, "--", "ls"], 125, word.split("=")[0], "a file's path, or 0 or off")
        self.assert_refused(["frob"], 2, "frob", "reheap --help")
        self.assert_refused([], 2, "say what to do")

    def test_the_longest_line_there_can_be(self):
        done = run("true", "x" * 100, env=environment(LONG="y" * 100000))
        self.assertEqual(done.returncode, 0)


class Help(CommandTest):
    def test_help(self):
        for words, part in ((["--help"], "doctor"), (["run", "--help"], "reheap run [OPTIONS] -- CMD [ARGS...]"),
                            (["doctor", "--help"], "--json"), (["completion", "--help"], "bash")):
            done = call(*words)
            self.assertEqual((done.returncode, done.stderr), (0, b""))
            self.assertIn(part, done.stdout.decode())

    def test_version(self):
        header = (ROOT / "include/reheap/reheap.h").read_text()
        numbers = [line.split()[2] for line in header.splitlines() if line.startswith("#define RH_VERSION_")]
        self.assertEqual(call("--version").stdout.decode(), "reheap " + ".".join(numbers) + "\n")


if __name__ == "__main__":
    unittest.main(verbosity=2)
