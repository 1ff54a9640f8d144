"""Inputs of the ready suite, the same bytes on every machine: python make.py KIND SIZE [NAME] > FILE"""

import json
import random
import sys
from collections.abc import Iterator

WORDS = [f"{head}{tail}" for head in ("arc", "bel", "cor", "dun", "fel", "gor", "hal", "kin", "lum", "mor", "nar",
                                      "pel", "rin", "sol", "tar", "ven") for tail in ("a", "en", "is", "or", "um")]


def records(count: int) -> Iterator[str]:
    """A JSON object a line."""
    dice = random.Random(1)
    for number in range(count):
        text = " ".join(_words(dice, 24))
        yield json.dumps({"id": number, "name": "-".join(_words(dice, 2)), "tags": _words(dice, 4), "text": text,
                          "size": int(dice.random() * 1e6), "inner": {"x": int(dice.random() * 100), "y": text[:20]}})


def _words(dice: random.Random, count: int) -> list[str]:
    return [WORDS[int(dice.random() * len(WORDS))] for _ in range(count)]


def cpp(count: int, name: str = "made") -> Iterator[str]:
    """C++ without headers, in a namespace of that name: templates, virtual functions, lambdas."""
    yield f"namespace {name} {{"
    yield "template <class T, int N> struct Array { T at[N]; T& operator[](int i) { return at[i % N]; }"
    yield "  template <class F> void each(F f) { for (int i = 0; i < N; ++i) f(at[i]); } };"
    yield "struct Shape { virtual ~Shape() = default; virtual double area(double scale) const = 0; };"
    for n in range(count):
        yield _UNIT.replace("@", str(n)).replace("#", str(n % 13 + 2)).replace("~", WORDS[n % len(WORDS)])
    calls = " + ".join(f"use_{n}({n})" for n in range(count))
    yield f"int all() {{ return {calls}; }}"
    yield f"}}  // namespace {name}"


_UNIT = """
// The ~ of number @, which has # corners.
enum class Kind@ { none, ~, other = # };
class Shape@ : public Shape {
 public:
  explicit Shape@(double side) : side_(side) {}
  double area(double scale) const override { double sum = 0; for (int i = 0; i < #; ++i) { if (i % 3 == 1)
      sum += side_ * scale; else sum -= static_cast<double>(i) / (scale + #); } return sum; }
  template <class T> T scaled(T by, Kind@ kind = Kind@::~) const { switch (kind) { case Kind@::none: return by;
      case Kind@::~: return static_cast<T>(by * side_); default: return T(#); } }
 private:
  double side_;
};
inline int use_@(int n) {
  Array<int, #> values{}; int total = 0;
  for (int i = 0; i < n + #; i++) values[i] += i * @;
  values.each([&total](int value) { total += value > 10 ? value / 3 : value * 2; });
  Shape@ shape(total); const Shape& seen = shape;
  return total + static_cast<int>(seen.area(1.5)) + shape.scaled<int>(n);
}"""


def smt(count: int) -> Iterator[str]:
    """Scheduling: jobs on machines that may not overlap, for z3's arithmetic and its search."""
    dice = random.Random(2)
    yield "(set-logic QF_LIA)"
    jobs = [(f"j{n}", 1 + int(dice.random() * 9), n % 4) for n in range(count)]
    for name, length, _ in jobs:
        yield f"(declare-fun {name} () Int) (assert (and (>= {name} 0) (<= (+ {name} {length}) {4 * count})))"
    for at, (one, length, machine) in enumerate(jobs):
        for other, other_length, other_machine in jobs[:at]:
            if machine == other_machine:
                yield f"(assert (or (>= {one} (+ {other} {other_length})) (>= {other} (+ {one} {length}))))"
        if at % 5:
            yield f"(assert (>= {one} (+ {jobs[at - 1][0]} {jobs[at - 1][1]})))"
    yield "(check-sat)"


def sql(count: int) -> Iterator[str]:
    """Tables filled, indexed, joined, grouped and searched, in memory."""
    yield f"""
CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT, kind INT, size INT);
CREATE TABLE sale(item INT, day INT, number INT, note TEXT);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count})
  INSERT INTO item SELECT i, 'item ' || (i * 7919 % {count}), i % 37, i * 31 % 1009 FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {3 * count})
  INSERT INTO sale SELECT i * 6007 % {count}, i % 365, i % 11, printf('note %d of %x', i, i * 2654435761) FROM n;
CREATE INDEX by_name ON item(name); CREATE INDEX by_item ON sale(item, day);
SELECT kind, count(*), sum(number), max(note) FROM sale JOIN item ON item.id = sale.item GROUP BY kind ORDER BY kind;
SELECT day, group_concat(name) FROM (SELECT day, name FROM sale JOIN item ON id = item WHERE number = 3
  ORDER BY day, name LIMIT 400) GROUP BY day;
SELECT count(DISTINCT substr(note, 1, 8)), count(*) FROM sale WHERE note LIKE '%7%e%';
UPDATE item SET name = upper(name) || size WHERE kind < 20; DELETE FROM sale WHERE day % 3 = 0;
SELECT name, (SELECT sum(number) FROM sale WHERE item = id) AS s FROM item WHERE kind = 5 ORDER BY s DESC, name LIMIT 9;
"""


def history(count: int) -> Iterator[str]:
    """A repository as git fast-import reads it: texts that change line by line."""
    dice = random.Random(3)
    files = {f"dir{n % 6}/file{n}.txt": [" ".join(_words(dice, 8)) for _ in range(120)] for n in range(40)}
    yield "reset refs/heads/main"
    for n in range(1, count + 1):
        changed = list(files) if n == 1 else [list(files)[int(dice.random() * len(files))] for _ in range(3)]
        message = f"Change {n}: {' '.join(_words(dice, 5))}"
        yield f"commit refs/heads/main\nmark :{n}\ncommitter A <a@example.org> {1700000000 + 600 * n} +0000"
        yield f"data {len(message)}\n{message}"
        if n > 1:
            yield f"from :{n - 1}"
        for name in dict.fromkeys(changed):
            lines = files[name]
            lines[int(dice.random() * len(lines))] = " ".join(_words(dice, 8))
            text = "\n".join(lines) + "\n"
            yield f"M 100644 inline {name}\ndata {len(text)}\n{text}"
    yield "done"


def project(count: int) -> Iterator[str]:
    """A CMakeLists.txt of many libraries that need each other, and functions that look at each."""
    yield "cmake_minimum_required(VERSION 3.20)\nproject(made NONE)\nset(all)"
    yield "function(note target)\n  get_target_property(known ${target} INTERFACE_COMPILE_DEFINITIONS)"
    yield "  foreach(word IN LISTS known)"
    yield "    string(REGEX REPLACE \"([A-Z]+)_([0-9]+)\" \"\\\\2-\\\\1\" word \"${word}\")"
    yield "    string(TOLOWER \"${word}\" word)\n    list(APPEND words ${word})\n  endforeach()"
    yield "  list(SORT words)\n  list(REMOVE_DUPLICATES words)\n  list(LENGTH words number)"
    yield "  set_property(GLOBAL APPEND PROPERTY noted \"${target}:${number}\")\nendfunction()"
    for n in range(count):
        yield f"add_library(part{n} INTERFACE)\ntarget_compile_definitions(part{n} INTERFACE"
        yield "  " + " ".join(f"{WORDS[(n * k) % len(WORDS)].upper()}_{n * k}=1" for k in range(1, 9)) + ")"
        if n:
            yield f"target_link_libraries(part{n} INTERFACE part{n // 2})"
        yield f"note(part{n})"
    yield "get_property(noted GLOBAL PROPERTY noted)\nlist(LENGTH noted count)\nmessage(STATUS \"noted ${count}\")"


def pages(count: int) -> Iterator[str]:
    """PostScript: text in several fonts, paths and gradients made of many strokes."""
    yield "%!PS"
    for n in range(count):
        yield f"/Times-Roman findfont {9 + n % 4} scalefont setfont"
        for line in range(50):
            words = " ".join(WORDS[(n * 31 + line * 7 + k) % len(WORDS)] for k in range(11))
            yield f"50 {740 - 14 * line} moveto ({words}) show"
        yield "gsave 0.3 setlinewidth 0 1 160 { /i exch def i 160 div 0.4 1 i 160 div sub setrgbcolor"
        yield f"  newpath i 3 mul 40 add {n % 60} moveto"
        yield f"  300 i add 400 500 i sub {n + 20} 560 i 2 mul curveto stroke }} for"
        yield "grestore showpage"


KINDS = {"records": records, "cpp": cpp, "smt": smt, "sql": sql, "history": history, "project": project,
         "pages": pages}


def main(kind: str, size: str, *name: str) -> None:
    for text in KINDS[kind](int(size), *name):
        sys.stdout.write(text + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
