"""The record of a comparison survives its JSON; what is damaged is named."""

import json

import pytest

from reheap_lab import results


def sample() -> results.Comparison:
    return results.Comparison(
        command=["true", "ä b"], lab_version="0.1.0", started="2026-01-01T00:00:00Z", cwd="/",
        reproduce="reheap compare",
        settings={"runs": 2, "margin": 0.01}, machine={"cores": 2},
        subjects=[results.Subject("system", proof={"malloc": "/lib/libc.so.6"}),
                  results.Subject("other", failed="gone")],
        runs=[results.Run("system", 0, 0, figures={"wall_s": 1.5, "minor_faults": 7},
                          series=results.Series([0.0, 0.1], [10, 20], [1.0, 2.0])),
              results.Run("system", 1, 0, failed="exit status 3"),
              results.Run("system", 0, 0, warmup=True, figures={"wall_s": 9})],
        extras={"system": results.Extras({"mmap": 3}, results.Profile("sigprof", 997, 10, 0, {"libc": 1.0},
                                                                      [results.Module("/lib/libc.so.6", 1.0,
                                                                                      "libc")]))},
        summaries={"wall_s": {"system": results.Summary(1.5, 1.4, 1.6, 2)}},
        verdicts=[results.Verdict("wall_s", "other", "system", 0.9, 0.8, 1.0, "faster", "text")],
        warnings=["careful"])


def test_json_gives_back_the_same_comparison():
    comparison = sample()
    assert results.load(results.dump(comparison)) == comparison


def test_what_is_not_known_is_absent():
    data = json.loads(results.dump(sample()))
    assert "failed" not in data["subjects"][0] and "more_runs" not in data["verdicts"][0]


def test_measured_leaves_out_warm_up_and_failures():
    assert [run.figures["wall_s"] for run in sample().measured("system")] == [1.5]


def test_keys_of_a_later_version_are_passed_over():
    data = json.loads(results.dump(sample())) | {"later": 1}
    assert results.load(json.dumps(data)) == sample()


@pytest.mark.parametrize("change, said", [
    (lambda d: d.pop("schema"), "schema is None"),
    (lambda d: d.update(schema="reheap-lab/compare/99"), "compare/99"),
    (lambda d: d.pop("command"), "comparison.command is missing"),
    (lambda d: d["runs"][0].update(round="x"), r"comparison.runs\[0\].round is a str, not a int"),
    (lambda d: d["runs"][0]["figures"].update(wall_s=None), "wall_s is a NoneType, not a int/float"),
    (lambda d: d["subjects"][1].update(warnings={}), r"subjects\[1\].warnings is a dict, not a list"),
    (lambda d: d["runs"][0].update(warmup=1), "warmup is a int, not a bool"),
])
def test_damage_is_named(change, said):
    data = json.loads(results.dump(sample()))
    change(data)
    with pytest.raises(results.Damaged, match=said):
        results.load(json.dumps(data))


@pytest.mark.parametrize("text", ['{"a": NaN}', "[" * 100_000, "1" * 10_000])
def test_what_only_python_takes_for_json_is_damage(text):
    with pytest.raises(results.Damaged, match="not JSON"):
        results.load(text)


def test_a_truncated_file_is_named(tmp_path):
    path = tmp_path / "half.json"
    path.write_text(results.dump(sample())[:200])
    with pytest.raises(results.Damaged, match="half.json: not JSON"):
        results.load_file(path)


def test_no_infinity_is_written():
    comparison = sample()
    comparison.runs[0].figures["wall_s"] = float("inf")
    with pytest.raises(ValueError):
        results.dump(comparison)
