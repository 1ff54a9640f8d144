"""What the evidence of a run proves of an allocator: how much of a command it served."""

import pathlib

import pytest

from reheap_lab import allocators, evidence
from reheap_lab.allocators import Allocator
from reheap_lab.evidence import Program, Proof

OURS, LIBC = {"malloc": "/a.so", "free": "/a.so"}, {"malloc": "/lib/libc.so.6"}
ALLOCATOR = Allocator("a", (pathlib.Path("/a.so"),))


def program(pid: int, path: str, cpu_us: int, peak_kib: int | None = 1000, *, parent: int | None = None,
            began: int = 0, ended: int = 99) -> Program:
    return Program(pid, path, began, ended, cpu_us, peak_kib, parent)


def proven(told: dict, *programs: Program) -> Proof:
    return Proof(evidence.Testimony(told), list(programs) or None)


def reach(*arguments):
    return proven(*arguments).reach(ALLOCATOR.objection)


def test_the_witness_is_read_line_by_line(tmp_path):
    (tmp_path / "e").write_text("5\t1\tmalloc\t/a.so\n5\t1\tfree\t/a.so\n5\t9\tmalloc\t/lib/libc.so.6\n5\t9\tfre")
    assert evidence.Testimony.read(tmp_path / "e").told == {(5, 1): OURS, (5, 9): LIBC}
    assert evidence.Testimony.read(tmp_path / "absent").told == {}


def test_what_served_all_of_it_has_no_more_to_say():
    found = reach({(5, 1): OURS}, program(5, "/bin/p", 900))
    assert found.share == 1 and found.refusal() is None and found.warnings() == []


def test_one_process_may_be_several_programs():
    told = {(5, 10): OURS, (5, 30): LIBC}
    found = reach(told, program(5, "/bin/sh", 20, ended=20), program(5, "/bin/p", 980, began=20))
    assert found.share == pytest.approx(0.02)
    assert found.refusal() == "p (98 % of the CPU time): its malloc was served by /lib/libc.so.6, not by /a.so"


def test_a_program_without_testimony_was_not_reached():
    found = reach({(5, 1): OURS}, program(5, "/bin/sh", 30), program(6, "/bin/static", 970, 500))
    assert "static (97 % of the CPU time): nothing in it was seen to allocate" in found.refusal()


def test_a_child_without_exec_has_its_parents_allocator():
    told = {(5, 1): OURS}
    assert reach(told, program(5, "/bin/p", 1), program(6, "/bin/p", 999, parent=0)).share == 1
    assert reach({}, program(5, "/bin/p", 1), program(6, "/bin/p", 999, parent=0)).refusal()


def test_a_small_part_is_told_and_a_trace_of_it_is_not():
    def of(cpu_us):
        return reach({(5, 1): OURS}, program(5, "/bin/p", 1000 - cpu_us), program(6, "/bin/s", cpu_us, 10))
    assert of(5).warnings() == [] and of(5).refusal() is None
    assert of(50).refusal() is None
    assert of(50).warnings()[0].startswith("5 % of the CPU time was not its own: s (5 % of the CPU time): nothing in")
    assert of(150).refusal()


def test_memory_is_that_of_the_largest_process():
    found = reach({(5, 1): OURS}, program(5, "/bin/p", 999, 1000), program(6, "/bin/s", 1, 5000))
    assert found.refusal() is None
    assert found.warnings()[0].startswith("no figures of memory, for the largest process was not served by it: s: ")


def test_without_accounting_the_first_process_stands_for_all():
    assert reach({(5, 1): OURS, (6, 1): LIBC}).refusal() is None
    assert "could not be accounted for" in reach({(5, 1): OURS}).warnings()[0]
    assert "was served by /lib/libc.so.6" in reach({(5, 1): LIBC, (6, 1): OURS}).refusal()
    for allocator in (allocators.system(), ALLOCATOR):
        assert "statically linked" in proven({}).reach(allocator.objection).refusal()


def test_the_proof_shown_is_that_of_the_program_that_worked_most():
    told = {(5, 1): OURS, (6, 1): {"malloc": "/a.so", "free": "/a.so", "calloc": "/a.so"}}
    shown = proven(told, program(5, "/bin/sh", 1), program(6, "/bin/p", 99)).served_most(ALLOCATOR.objection)
    assert "calloc" in shown


def test_another_program_in_a_later_run_is_seen():
    made = proven({(5, 1): OURS}, program(5, "/bin/p", 9), program(6, "/bin/static", 1))
    assert made.unseen([program(7, "/bin/p", 95), program(8, "/bin/q", 5)], ALLOCATOR.objection) is None
    other = made.unseen([program(7, "/bin/p", 5), program(8, "/bin/q", 95)], ALLOCATOR.objection)
    assert other == "q (95 % of the CPU time): it was not seen there"
    assert made.unseen([program(8, "/bin/static", 95)], ALLOCATOR.objection)


def test_a_program_with_its_own_malloc_is_told():
    own = proven({(5, 1): {"malloc": "/usr/bin/program"}}, program(5, "/usr/bin/program", 9))
    assert "brings its own malloc" in allocators.system().warnings(own)[0]
    assert not allocators.system().warnings(proven({(5, 1): LIBC}, program(5, "/bin/p", 9)))


# ---- what bypasses malloc ---------------------------------------------------------------------


def holding(private_kib: int, **mapped: int) -> Program:
    return Program(5, "/usr/bin/python3.11", 0, 99, 1, private_kib + 9000, None, private_kib,
                   {f"/usr/lib/{name}": kib for name, kib in mapped.items()})


def beside(*programs: Program):
    return proven({}, *programs).beside(lambda path: path == "/usr/lib/a.so")


def test_memory_that_others_mapped_is_told_with_what_helps():
    found = beside(holding(40960, **{"libpython3.11.so.1.0": 30720, "a.so": 4096}))
    assert found.is_much()
    assert found.sentence() == (
        "python3.11 holds 30 MiB of its peak of 48.8 MiB in memory that it mapped itself (libpython3.11.so.1.0), not "
        "in malloc's heap. No allocator changes that part: PYTHONMALLOC=malloc in the environment makes CPython take "
        "it from malloc")
    assert beside(holding(40960, game=30720)).sentence().endswith("No allocator changes that part")


def test_what_the_allocator_mapped_and_what_little_others_did_is_no_news():
    assert beside(holding(40960, **{"a.so": 40000})) is None
    assert not beside(holding(40960, game=10240)).is_much()
    assert beside(holding(40960, game=10241)).is_much()
    assert beside(holding(100, game=40960)).is_much()  # shared memory is not private, and mapped all the same
    assert beside() is None


def test_the_largest_process_decides():
    small, large = holding(9000, game=9000), holding(90000)
    assert beside(small, large) is None and beside(large, small) is None
