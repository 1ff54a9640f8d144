"""Builds small programs in C and records them."""

import pathlib
import subprocess
import sys

import pytest
import trace_reader

from reheap_lab import native, record

RECORD = [sys.executable, "-c", "from reheap_lab.cli import main; main()", "record"]
NEEDED = pytest.mark.skipif(sys.platform != "linux" or native.find_library(record.RECORDER) is None,
                            reason="the recorder is not built here")


class Lab:
    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        self.trace = folder / "t.rht"

    def program(self, body: str, *flags: str) -> str:
        return self.build("program", PRELUDE + body, *flags)

    def build(self, name: str, text: str, *flags: str) -> str:
        source, made = self.folder / f"{name}.c", self.folder / name
        source.write_text(text)
        subprocess.run(["cc", "-O1", "-w", "-fno-builtin", "-pthread", "-o", made, source, *flags], check=True)
        return str(made)

    def record(self, *words: str, options: tuple[str, ...] = (), **more) -> subprocess.CompletedProcess:
        return subprocess.run([*RECORD, "-o", str(self.trace), *options, "--", *words], capture_output=True, text=True,
                              timeout=120, **more)

    def recorded(self, body: str, *words: str, options: tuple[str, ...] = ()) -> trace_reader.Trace:
        done = self.record(self.program(body), *words, options=options)
        assert done.returncode == 0, done.stderr
        return trace_reader.read(self.trace)


PRELUDE = """
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
/* What is between two of these is the program's own doing. */
static void mark(void) { free(malloc(77777)); }
"""
