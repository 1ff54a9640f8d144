"""A suite's file: what it may say, and what is said of what it may not."""

import pytest

from reheap_lab.errors import UsageError
from reheap_lab.options import settings_of
from reheap_lab.suite import command, file


def read(tmp_path, text: str) -> file.Suite:
    path = tmp_path / "my.toml"
    path.write_text(text)
    return file.read(path)


WHOLE = """
title = "mine"
with = "system,reheap"
runs = 7
env = { A = "1", B = "2" }

[case.one]
about = "the first"
command = "prog 'a b' --x={x}"
parameters = { x = "1..4*2", y = ["p q", 0.5] }
env = { B = "{y}" }
time = "2m"
margin = "2%"

[case."the other"]
command = ["server", "{packages}", "{{x}}"]
load = "drive {case}"
ready = "ask"
idle = 0.5
own_folder = true
input = "data/in"
more_is_better = ["requests/s=([0-9.]+)"]
less_is_better = "p99=p99 ([0-9]+)"
wheels = ["a==1 --hash=sha256:00"]
"""


def test_every_setting_arrives(tmp_path):
    suite = read(tmp_path, WHOLE)
    assert suite.title == "mine" and [c.group for c in suite.cases] == ["one"] * 6 + ["the other"]
    line, words = suite.cases[5].placed({})
    assert suite.cases[5].name == "one x=4, y=0.5" and line == ["prog", "a b", "--x=4"]
    assert words["env"] == {"A": "1", "B": "0.5"} and words["cwd"] == str(tmp_path)
    assert words["time"] == 120 and "runs" not in words and words["margin"] == 0.02
    other = suite.cases[6]
    line, words = other.placed(dict.fromkeys(file.PLACES, "P"))
    assert line == ["server", "P", "{x}"] and words["load"] == "drive P" and words["runs"] == 7
    assert words["input"] == str(tmp_path / "data/in") and "cwd" not in words
    made = settings_of({"with_": None, "warmup": 1, "no_extras": False} | words)
    assert made.server.idle == 0.5 and made.own_folder
    assert [(own.name, own.more_is_better) for own in made.own] == [("requests/s", True), ("p99", False)]


@pytest.mark.parametrize("text, said", [
    ("x = ", "not TOML"),
    ("runs = 3", "names no case"),
    ("case = 3", "case must be a table"),
    ("[case]\nx = 3", "case x is no table"),
    ("[case.x]\nruns = 3", "case x has no command"),
    ("x = " + "[" * 100_000, "not TOML"),
    ("[case.x]\ncommand = ['a', 'b', \"c\\u0000\"]", r"a text holds the character of number 0 \(\\u0000\), which no"),
    ("[case.x]\ncommand = 'a'\nenv = { A = \"\\u0000\" }", "a text holds the character of number 0"),
    ("[case.x]\ncommand = 'a'\ntimeout = 1" + "0" * 20, "timeout: 1000.* is longer than three years"),
    ("[case.x]\ncommand = ''", "case x: command must not be empty"),
    ("[case.x]\ncommand = \"a 'b\"", "case x: command is no command: No closing quotation"),
    ("[case.x]\ncommand = 3", "case x: command must be a text or a list of texts, not 3"),
    ("[case.x]\ncommand = 'a'\ncomand = 'b'", "no setting is called comand; is command meant"),
    ("[case.x]\ncommand = 'a'\nzzz = 'b'", "no setting is called zzz. There are: with, runs"),
    ("run = 3\n[case.x]\ncommand = 'a'", "no setting is called run; is runs meant"),
    ("command = 'a'\n[case.x]\ncommand = 'a'", "no setting is called command"),
    ("runs = true\n[case.x]\ncommand = 'a'", "runs must be a whole number, not True"),
    ("runs = 0\n[case.x]\ncommand = 'a'", "runs must be at least 1"),
    ("runs = '3'\n[case.x]\ncommand = 'a'", "runs must be a whole number"),
    ("own_folder = 1\n[case.x]\ncommand = 'a'", "own_folder must be true or false"),
    ("time = 'soon'\n[case.x]\ncommand = 'a'", "time: 'soon' is no length of time"),
    ("time = true\n[case.x]\ncommand = 'a'", "time must be like"),
    ("output = 'maybe'\n[case.x]\ncommand = 'a'", "output must be one of compare, check, discard"),
    ("env = { A = 1 }\n[case.x]\ncommand = 'a'", "env must give each variable a text; A has 1"),
    ("[case.x]\ncommand = 'a {n}'", r"case x: \{n\}: no parameter has this name"),
    ("[case.x]\ncommand = 'a'\nparameters = { n = [1] }", "case x: the parameter n stands nowhere"),
    ("[case.x]\ncommand = 'a {n}'\nparameters = { n = 1 }", "parameters must give n a list of values"),
    ("[case.x]\ncommand = 'a {n}'\nparameters = { n = [] }", "the parameter n has no values"),
    ("[case.x]\ncommand = 'a {n}'\nparameters = { n = '3..1' }", "a range goes up"),
    ("[case.'a,b']\ncommand = 'a'", "without commas"),
    ("[case.x]\ncommand = 'a'\nmore_is_better = 'n=x'", "has no group"),
    ("[case.x]\ncommand = 'a'\nmore_is_better = 'n=(x)'\n[case.y]\ncommand = 'a'\nless_is_better = 'n=(x)'",
     "n is better when it is more in one case"),
])
def test_what_is_wrong_is_named(tmp_path, text, said):
    with pytest.raises(UsageError, match=said) as error:
        read(tmp_path, text)
    assert "my.toml" in str(error.value)


@pytest.mark.parametrize("words, said", [
    ({"own_folder": True, "cwd": "/x"}, "does not go together with cwd"),
    ({"own_folder": True, "side_by_side": True, "prepare": "true"}, "does not go together with side_by_side"),
    ({"env": {"LD_PRELOAD": "x"}}, "LD_PRELOAD is how the command is put on an allocator"),
])
def test_settings_that_contradict_each_other(words, said):
    with pytest.raises(UsageError, match=said):
        settings_of({"with_": None, "warmup": 1, "no_extras": False} | words)


def test_only_takes_cases_by_name(tmp_path):
    suite = read(tmp_path, WHOLE)
    assert [case.group for case in file.only(suite, "the other")] == ["the other"]
    assert len(file.only(suite, None)) == 7 and len(file.only(suite, "one, the other")) == 7
    for wanted, said in (("two", "there is no such case. There are: one, the other"), (",", "names no case")):
        with pytest.raises(UsageError, match=said):
            file.only(suite, wanted)


def test_the_ready_suite_is_whole():
    suite = file.read(command.READY_MADE)
    assert len(suite.cases) >= 15
    for case in suite.cases:
        assert case.about and case.words["own_folder"] and (case.needs.size or not case.needs)
        assert all("==" in line and line.count("--hash=sha256:") >= 1 for line in case.needs.wheels)
