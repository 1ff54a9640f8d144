"""Parameters: their values, their product, and where they are put."""

import pytest

from reheap_lab.errors import UsageError
from reheap_lab.suite import parameters
from reheap_lab.suite.cases import swept


@pytest.mark.parametrize("text, values", [
    ("threads=1,2,4,8", ["1", "2", "4", "8"]),
    ("mode=fast, slow", ["fast", "slow"]),
    ("n=1..4", ["1", "2", "3", "4"]),
    ("n=0..100+50", ["0", "50", "100"]),
    ("n=0..90+50", ["0", "50"]),
    ("n=1..64*4", ["1", "4", "16", "64"]),
    ("n=-2..2+2", ["-2", "0", "2"]),
    ("x=0.1..0.4+0.1", ["0.1", "0.2", "0.3", "0.4"]),
    ("x=1..2*1.5", ["1", "1.5"]),
    ("n=1,8..10,x=y", ["1", "8", "9", "10", "x=y"]),
    ("path=../a,b..c", ["../a", "b..c"]),
    ("n=5..5", ["5"]),
    ("n=1e3", ["1e3"]),
])
def test_values(text, values):
    made = parameters.parse(text)
    assert (made.name, list(made.values)) == (text.partition("=")[0], values)


@pytest.mark.parametrize("text, said", [
    ("threads", "gives a parameter no values; for example"),
    ("threads=", "gives a parameter no values"),
    ("=1", "cannot be a parameter's name"),
    ("a b=1", "cannot be a parameter's name"),
    ("ä=1", "cannot be a parameter's name"),
    ("n=1,,2", "an empty value"),
    ("n=4..1", "a range goes up"),
    ("n=1..9+0", "would never arrive"),
    ("n=1..9*1", "would never arrive"),
    ("n=0..9*2", "would never arrive"),
    ("n=1..99999999999", "more than 1000 values"),
    ("n=1,2,1..3", "has the value 1 twice"),
])
def test_wrong_values_are_named(text, said):
    with pytest.raises(UsageError, match=said):
        parameters.parse(text)


def test_the_product_runs_the_last_one_fastest():
    given = [parameters.parse("a=1,2"), parameters.parse("b=x,y,z")]
    assert [f"{v['a']}{v['b']}" for v in parameters.product(given)] == ["1x", "1y", "1z", "2x", "2y", "2z"]
    assert parameters.product([]) == [{}]


@pytest.mark.parametrize("texts, said", [
    (["a=1", "a=2"], "the parameter a is given twice"),
    (["a=1..100", "b=1..100"], "make 10000 cases"),
])
def test_products_that_make_no_sense(texts, said):
    with pytest.raises(UsageError, match=said):
        parameters.product([parameters.parse(text) for text in texts])


def test_values_are_put_where_their_name_stands_and_nowhere_else():
    known = {"n": "4", "mode": "{n}"}
    assert parameters.fill("-j{n} {mode} {{n}} ${n} {} { n } {1} {a-b}", known) == "-j4 {n} {n} $4 {} { n } {1} {a-b}"
    assert parameters.fill({"env": ["{n}", 3]}, known) == {"env": ["4", 3]}
    with pytest.raises(UsageError, match=r"\{x\}: no parameter has this name. There are: n, mode. .*write \{\{x\}\}"):
        parameters.fill("{x}", known)


def test_a_sweep_makes_a_case_for_each_combination():
    given = [parameters.parse("n=1,2"), parameters.parse("m=a,b")]
    made = swept("prog", ("prog", "{n}"), {"setup": "make {m}", "runs": 3}, given)
    assert [case.name for case in made] == ["prog n=1, m=a", "prog n=1, m=b", "prog n=2, m=a", "prog n=2, m=b"]
    assert made[2].placed({}) == (["prog", "2"], {"setup": "make a", "runs": 3})
    assert {case.group for case in made} == {"prog"}


@pytest.mark.parametrize("command, words, said", [
    (("prog", "{n}"), {}, "the parameter m stands nowhere in the command"),
    (("prog", "{n}{m}{x}"), {}, r"\{x\}: no parameter has this name"),
    (("prog", "{n}{m}"), {"prepare": "{y}"}, r"\{y\}: no parameter"),
])
def test_what_is_not_used_or_not_known_is_named_before_anything_runs(command, words, said):
    with pytest.raises(UsageError, match=said):
        swept("", command, words, [parameters.parse("n=1,2"), parameters.parse("m=1")])


def test_names_of_places_are_taken():
    with pytest.raises(UsageError, match="has a meaning of its own"):
        swept("", ("{case}",), {}, [parameters.parse("case=1")])
