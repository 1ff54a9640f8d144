#!/usr/bin/env python3
"""Shows that tools/check_fast_path.py fails where it must: each test compiles a small library with one fault."""

import os
import pathlib
import shlex
import subprocess
import tempfile
import unittest

import check_fast_path

COMPILER = shlex.split(os.environ.get("CC", "cc"))
HEAD = """
#include <stddef.h>
#define COLD __attribute__((cold, noinline, visibility("hidden")))
#define INNER __attribute__((noinline, visibility("hidden")))
static char arena[1 << 16];
static __thread size_t used __attribute__((tls_model("initial-exec")));
int lock;
"""


class FastPath(unittest.TestCase):
    def walk(self, source: str, *flags: str, slow: tuple[str, ...] = ()) -> check_fast_path.Walk:
        with tempfile.TemporaryDirectory() as folder:
            here = pathlib.Path(folder)
            (here / "x.c").write_text(HEAD + source, encoding="utf-8")
            flags = ("-O2", "-fPIC", "-ffreestanding", *flags)
            subprocess.run([*COMPILER, *flags, "-c", "x.c", "-o", "x.o"], cwd=here, check=True)
            subprocess.run(["ar", "rc", "x.a", "x.o"], cwd=here, check=True)
            subprocess.run([*COMPILER, *flags, "-shared", "x.o", "-o", "x.so"], cwd=here, check=True)
            return check_fast_path.walk(str(here / "x.so"), str(here / "x.a"), "malloc", slow)

    def fails(self, words: str, source: str, *flags: str) -> None:
        result = self.walk(source, *flags)
        self.assertTrue(any(words in problem for problem in result.problems), (words, result))

    def test_plain_code_passes(self):
        result = self.walk("void* malloc(size_t n) { void* p = arena + used; used += n; return p; }")
        self.assertEqual(result.problems, [])
        self.assertEqual(result.walked, ["malloc"])

    def test_cold_code_may_lock(self):
        result = self.walk("""
            COLD void* refill(size_t n) { __atomic_fetch_add(&lock, 1, 5); return arena + n; }
            void* malloc(size_t n) { if (used + n > 99) return refill(n); used += n; return arena + used; }""")
        self.assertEqual(result.problems, [])
        self.assertNotEqual(result.slow, set())

    def test_locked_instruction(self):
        self.fails("a locked instruction", "void* malloc(size_t n) { __atomic_fetch_add(&lock, n, 5); return arena; }")

    def test_compare_exchange(self):
        self.fails("a locked instruction",
                   "void* malloc(size_t n) { int zero = 0; __atomic_compare_exchange_n(&lock, &zero, n, 0, 5, 5);"
                   " return arena; }")

    def test_exchange_with_memory(self):
        self.fails("an exchange with memory",
                   "void* malloc(size_t n) { return arena + __atomic_exchange_n(&lock, n, 2); }")

    def test_sequentially_consistent_store(self):
        # GCC and Clang store with an exchange, or with a fence behind it.
        result = self.walk("void* malloc(size_t n) { __atomic_store_n(&lock, n, 5); return arena; }")
        self.assertNotEqual(result.problems, [])

    def test_lock_in_a_function_that_is_not_cold(self):
        result = self.walk("""
            INNER void* refill(size_t n) { __atomic_fetch_add(&lock, 1, 5); return arena + n; }
            void* malloc(size_t n) { if (used + n > 99) return refill(n); used += n; return arena + used; }""")
        self.assertEqual(result.walked, ["malloc", "refill"])
        self.assertIn("refill has a locked instruction", " ".join(result.problems))

    def test_named_slow_function_may_lock(self):
        source = """
            INNER void* refill(size_t n) { __atomic_fetch_add(&lock, 1, 5); return arena + n; }
            void* malloc(size_t n) { if (used + n > 99) return refill(n); used += n; return arena + used; }"""
        result = self.walk(source, slow=("refill",))
        self.assertEqual((result.problems, result.slow), ([], {"refill"}))

    def test_unknown_slow_function(self):
        result = self.walk("void* malloc(size_t n) { return arena + n; }", slow=("rh::gone",))
        self.assertEqual(len(result.problems), 1)
        self.assertIn("rh::gone", result.problems[0])

    def test_call_out_of_the_library(self):
        self.fails("leaves the library",
                   "void* outside(size_t n); void* malloc(size_t n) { return (char*)outside(n) + 1; }")

    def test_dynamic_thread_local_storage(self):
        self.fails("__tls_get_addr", "extern __thread char* top; void* malloc(size_t n) { return top += n; }",
                   "-ftls-model=global-dynamic", "-mtls-dialect=gnu")

    def test_call_through_a_pointer(self):
        self.fails("cannot be followed", "void* (*hook)(size_t); void* malloc(size_t n) { return hook(n); }")

    def test_system_call(self):
        self.fails("a system call", 'void* malloc(size_t n) { __asm__ volatile("syscall"); return arena + n; }')

    def test_missing_function(self):
        self.fails("malloc is not in", "void other(void) {}")


if __name__ == "__main__":
    unittest.main()
