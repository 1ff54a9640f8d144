"""The one sentence that says which allocator to take."""

import pytest

from reheap_lab import verdicts
from reheap_lab.answer import answer
from reheap_lab.results import Comparison, Run, Subject

NOISE = (0.998, 1.001, 1.003, 0.999, 1.0, 1.002, 0.997, 1.0)


def compared(failed: tuple[str, ...] = (), rounds: int = 8, spread: float = 1, **subjects: tuple[float, float]):
    """Of each subject its time in seconds and its memory in MiB, in a comparison of eight quiet rounds."""
    made = Comparison(["x"], subjects=[Subject(name, failed="it broke" if name in failed else None)
                                       for name in subjects])
    for place, (name, (time, memory)) in enumerate(subjects.items()):
        for number in range(rounds if name not in failed else 0):
            noise = 1 + (NOISE[(number + 3 * place) % 8] - 1) * spread
            made.runs.append(Run(name, number, place, figures={"wall_s": time * noise,
                                                               "peak_rss_kib": 1024 * memory * noise}))
    verdicts.judge(made)
    return answer(made)


@pytest.mark.parametrize("take, text, subjects", [
    ("a", "Take a: 18 % faster than system, with the same memory.", {"system": (1, 100), "a": (0.82, 100)}),
    ("a", "Take a: 18 % faster than system, with 20 % more memory. system takes 17 % less memory, and is 22 % slower "
          "than a.", {"system": (1, 100), "a": (0.82, 120)}),
    ("b", "Take b: 30 % faster than system, with 5.0 % less memory. Next is a: 20 % faster than system, with the same "
          "memory.", {"system": (1, 100), "a": (0.8, 100), "b": (0.7, 95)}),
    ("b", "Take b: as fast as system, with 10 % less memory.", {"system": (1, 100), "b": (1, 90)}),
    ("b", "Take b: 30 % faster than system, with 30 % less memory. Next is a: 30 % faster than system, with the same "
          "memory.", {"system": (1, 100), "a": (0.7, 100), "b": (0.7, 70)}),
    ("system", "Stay with system: nothing is faster, or as fast with less memory.",
     {"system": (1, 100), "a": (1.2, 90 / 0.9), "b": (1, 130)}),
    ("system", "Stay with system: nothing is faster. a takes 20 % less memory, and is 30 % slower than system.",
     {"system": (1, 100), "a": (1.3, 80)}),
    (None, "Nothing tells them apart: they take the same time and the same memory.",
     {"system": (1, 100), "a": (1, 100)}),
])
def test_what_to_take(take, text, subjects):
    found = compared(**subjects)
    assert (found.take, found.text) == (take, text)


def test_a_few_pages_more_are_no_difference():
    """4 % of two mebibytes are 82 KiB; of twenty they count."""
    assert compared(system=(1, 2), a=(1, 2.08)).text.startswith("Nothing tells them apart: they take the same time")
    assert compared(system=(1, 20), a=(1, 20.8)).text.startswith("Stay with system")


def test_a_second_choice_that_may_be_as_good_is_said_to_be():
    assert compared(system=(1, 100), a=(0.8, 100), b=(0.8, 100)).text == (
        "Take a: 20 % faster than system, with the same memory. b does as well: 20 % faster than system, with the same "
        "memory.")
    assert " b may do as well: 30 % faster" in compared(spread=6, system=(1, 100), a=(0.69, 100), b=(0.7, 100)).text


def test_what_is_undecided_is_not_excluded():
    """a is certainly slower; of b nothing is known but that its memory is the same."""
    assert compared(system=(1, 100), a=(1.2, 100)).text.startswith("Stay with system: nothing is faster")
    noisy = compared(spread=6, system=(1, 100), a=(1.2, 100), b=(0.99, 100))
    assert noisy.text == "Stay with system: nothing is shown to be faster, or as fast with less memory."


def test_what_is_not_certain_is_not_called_better():
    noisy = compared(spread=30, system=(1, 100), a=(0.97, 98))
    assert noisy.take is None and noisy.text.startswith("Nothing tells them apart yet")


def test_too_little_to_say_anything():
    assert compared(rounds=2, system=(1, 9), a=(1, 9)).text == "Too few rounds to tell the allocators apart."
    alone = compared(("a",), system=(1, 9), a=(1, 9))
    assert alone.text == "Only system could be measured: there is nothing to compare."
    assert compared(("system",), system=(1, 9)).text == "No allocator could be measured."


def test_one_that_failed_is_not_spoken_of():
    found = compared(("b",), system=(1, 100), a=(0.8, 100), b=(0.1, 1))
    assert found.take == "a" and "b" not in found.text.replace("system", "").split()


def test_with_several_processes_memory_is_that_of_all():
    made = Comparison(["x"], subjects=[Subject("system"), Subject("a")])
    for name, largest, all_of_them in (("system", 1e5, 5e5), ("a", 1e5, 4e5)):
        made.runs += [Run(name, n, 0, figures={"wall_s": 1.0, "peak_rss_kib": largest, "peak_tree_kib": all_of_them})
                      for n in range(8)]
    verdicts.judge(made)
    assert answer(made).text == "Take a: as fast as system, with 20 % less memory."
