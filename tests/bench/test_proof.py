"""That nobody is listed under a name whose library did not serve it."""

import dataclasses
import pathlib
import shutil
import subprocess

import pytest
from common import subjects
from common.work import Work, run_once, telling
from reheap_lab import allocators, compare, evidence
from reheap_lab.allocators import Allocator
from reheap_lab.errors import LabError
from reheap_lab.settings import Settings

# Serves malloc itself: blocks are cut from a mapping and never freed.
BUMP = """
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#define SHOWN __attribute__((visibility("%s")))
static char* at; static size_t left;
SHOWN void* malloc(size_t size) {
  size = (size + 31) / 16 * 16;
  if (size > left) {
    left = size + (64 << 20);
    at = mmap(0, left, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) { errno = ENOMEM; left = 0; return 0; }
  }
  *(size_t*)at = size - 16; void* block = at + 16; at += size; left -= size; return block;
}
SHOWN size_t malloc_usable_size(void* block) { return block ? ((size_t*)block)[-2] : 0; }
SHOWN void free(void* block) { (void)block; }
SHOWN void* calloc(size_t n, size_t size) { return malloc(n * size); }
SHOWN void* realloc(void* old, size_t size) {
  void* block = malloc(size); size_t had = malloc_usable_size(old);
  if (old && block) memcpy(block, old, had < size ? had : size);
  return block;
}
"""
FORWARDS = """
#include <stddef.h>
extern void *__libc_malloc(size_t), __libc_free(void*), *__libc_calloc(size_t, size_t), *__libc_realloc(void*, size_t);
void* malloc(size_t n) { return __libc_malloc(n); }
void free(void* p) { __libc_free(p); }
void* calloc(size_t n, size_t m) { return __libc_calloc(n, m); }
void* realloc(void* p, size_t n) { return __libc_realloc(p, n); }
"""
NOISY = BUMP % "default" + \
    '#include <unistd.h>\n__attribute__((constructor)) static void say(void) { write(2, "hello", 5); }\n'


@pytest.fixture
def build(tmp_path):
    def library(name: str, text: str) -> Allocator:
        source, made = tmp_path / f"{name}.c", tmp_path / f"{name}.so"
        source.write_text(text)
        subprocess.run(["cc", "-O1", "-fno-builtin", "-shared", "-fPIC", "-w", "-o", made, source], check=True)
        return Allocator(name, (made,))
    return library


def test_the_system_heap():
    subjects.prove(allocators.system())


def test_a_library_that_serves_malloc(build):
    subjects.prove(build("bump", BUMP % "default"))


def test_hidden_symbols_are_found_out(build, tmp_path):
    allocator = build("hidden", BUMP % "hidden")
    with pytest.raises(LabError, match="malloc was served by .*libc"):
        subjects.prove(allocator)
    with pytest.raises(LabError, match="malloc was served by .*libc"):
        run_once(["true"], allocator, tmp_path)


def test_a_library_that_only_forwards_is_found_out(build):
    with pytest.raises(LabError, match=r"libc's heap grew by \d+ bytes while 1048576 were taken"):
        subjects.prove(build("forwards", FORWARDS))


def test_one_that_prints_is_refused(build):
    with pytest.raises(LabError, match="loading it printed: hello"):
        subjects.prove(build("noisy", NOISY))


def test_a_library_that_cannot_be_loaded(tmp_path):
    with pytest.raises(LabError):
        subjects.prove(Allocator("gone", (tmp_path / "gone.so",)))


def test_a_preload_of_the_callers_shell_is_left_out(build, monkeypatch):
    monkeypatch.setenv("LD_PRELOAD", str(build("bump", BUMP % "default").libraries[0]))
    assert [one.name for one in subjects.choose([], reheap=False).allocators] == ["system"]


def test_what_another_served_is_a_failure(monkeypatch, tmp_path):
    seen = evidence.Testimony({(1, 1): {"malloc": "/other.so"}})
    allocator = dataclasses.replace(allocators.system(), name="a", libraries=(pathlib.Path("/lib/libc.so.6"),))
    monkeypatch.setattr(evidence.Testimony, "read", lambda _: seen)
    with pytest.raises(LabError, match="/other.so"):
        run_once([shutil.which("true")], allocator, tmp_path)


def test_a_link_to_the_library_is_the_library(build, tmp_path):
    real = build("bump", BUMP % "default")
    (tmp_path / "link.so").symlink_to(real.libraries[0])
    subjects.prove(Allocator("link", (tmp_path / "link.so",)))


def test_a_static_program_is_found_out(tmp_path):
    (tmp_path / "still.c").write_text("int main(void) { return 0; }")
    subprocess.run(["cc", "-static", "-o", tmp_path / "still", tmp_path / "still.c"], check=True)
    with pytest.raises(LabError, match="statically linked"):
        run_once([tmp_path / "still"], allocators.system(), tmp_path)


def test_a_program_that_prints_no_figures_has_failed():
    def figures_of(printed: str) -> dict[str, float]:
        return {"figure": float(printed)}

    made = compare.compare(["echo", "7"], [allocators.system()], Settings(runs=1, warmups=0, extras=False), None,
                           telling(figures_of))
    assert made.runs[0].figures["figure"] == 7
    with pytest.raises(LabError, match="what it printed makes no figures"):
        compare.compare(["echo", "seven"], [allocators.system()], Settings(runs=1, extras=False), None,
                        telling(figures_of))


def test_figures_of_a_command_of_which_a_process_was_out_of_reach_are_not_taken():
    with pytest.raises(LabError, match="CPU time.*: it was started without LD_PRELOAD"):
        compare.compare(["sh", "-c", "env -i true; true"], [allocators.system()], Settings(runs=1, extras=False), None,
                        Work)
