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


def templates(count: int) -> Iterator[str]:
    """C++ without headers that is mostly worked out by the compiler: lists of types, tuples, sums of constants."""
    yield _LISTS
    for n in range(count):
        yield _LISTED.replace("@", str(n)).replace("#", str(n % 17 + 24))
    yield "int all() { return " + " + ".join(f"use_{n}({n})" for n in range(count)) + "; }"


_LISTS = """
template <class... T> struct List { static constexpr int size = sizeof...(T); };
template <int N, int K> struct Number { static constexpr int value = N * K % 31; };
template <class A, class B> struct Joined;
template <class... A, class... B> struct Joined<List<A...>, List<B...>> { using type = List<A..., B...>; };
template <int N, int K> struct Numbers {
  using type = typename Joined<typename Numbers<N - 1, K>::type, List<Number<N, K>>>::type;
};
template <int K> struct Numbers<0, K> { using type = List<>; };
template <class L, template <class> class Keep> struct Filtered;
template <template <class> class Keep> struct Filtered<List<>, Keep> { using type = List<>; };
template <bool> struct If { template <class A, class B> using type = A; };
template <> struct If<false> { template <class A, class B> using type = B; };
template <class H, class... T, template <class> class Keep> struct Filtered<List<H, T...>, Keep> {
  using rest = typename Filtered<List<T...>, Keep>::type;
  using type = typename If<Keep<H>::value>::template type<typename Joined<List<H>, rest>::type, rest>;
};
template <int I, class T> struct Leaf { int held = T::value + I; };
template <class L, int... I> struct Leaves;
template <class... T, int... I> struct Leaves<List<T...>, I...> : Leaf<I, T>... {
  constexpr int sum() const { return (static_cast<const Leaf<I, T>&>(*this).held + ... + 0); }
  template <class F> constexpr int each(F f) const { return (f(static_cast<const Leaf<I, T>&>(*this).held) + ... + 0); }
};
template <class L, int N, int... I> struct Tuple : Tuple<L, N - 1, N - 1, I...> {};
template <class L, int... I> struct Tuple<L, 0, I...> : Leaves<L, I...> {};"""

_LISTED = """
template <class T> struct Kept@ { static constexpr bool value = T::value % 7 != @ % 7; };
inline int use_@(int n) {
  using all = Numbers<#, @ + 2>::type;
  using kept = Filtered<all, Kept@>::type;
  Tuple<kept, kept::size> values;
  return values.sum() + values.each([n](auto held) { return held * n + @; });
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


def bits(width: int) -> Iterator[str]:
    """A number taken apart into its two factors, for z3's bit vectors: the product of two primes of half the width."""
    half = width // 2
    one, other = _prime_below(2 ** half), _prime_below(2 ** half - 2 ** (half - 3))
    yield f"(set-logic QF_BV) (declare-fun a () (_ BitVec {width})) (declare-fun b () (_ BitVec {width}))"
    yield f"(assert (= (bvmul a b) (_ bv{one * other} {width})))"
    for name in ("a", "b"):
        yield f"(assert (bvugt {name} (_ bv1 {width}))) (assert (bvult {name} (_ bv{2 ** half} {width})))"
    yield "(assert (bvule a b)) (check-sat)"


def _prime_below(number: int) -> int:
    return next(n for n in range(number - 1, 1, -1) if all(n % by for by in range(2, int(n ** 0.5) + 1)))


def quantifiers(count: int) -> Iterator[str]:
    """A table that is written in many places stays in order, for z3's arrays, functions and quantifiers."""
    dice = random.Random(4)
    yield "(set-option :smt.random_seed 1) (declare-fun rank (Int) Int) (declare-fun t0 () (Array Int Int))"
    yield "(assert (forall ((x Int) (y Int)) (! (=> (< x y) (< (rank x) (rank y))) :pattern ((rank x) (rank y)))))"
    yield "(assert (forall ((i Int)) (! (= (select t0 i) (rank i)) :pattern ((select t0 i)))))"
    places = [int(dice.random() * 4 * count) for _ in range(count)]
    for n, place in enumerate(places, 1):
        yield f"(declare-fun t{n} () (Array Int Int))"
        yield f"(assert (= t{n} (store t{n - 1} {place} (rank {place}))))"
    for place in sorted(set(places)):
        yield f"(push) (assert (not (< (select t{count} {place}) (select t{count} {place + 1 + place % 5}))))"
        yield "(check-sat) (pop)"


def rust(count: int) -> Iterator[str]:
    """A library in Rust: structures, traits, generics, closures over collections."""
    yield "use std::collections::{BTreeMap, HashMap};"
    yield "pub trait Shape { fn area(&self, scale: f64) -> f64; fn name(&self) -> String; }"
    for n in range(count):
        yield _RUST.replace("@", str(n)).replace("$", str(n % 13 + 2)).replace("~", WORDS[n % len(WORDS)])
    shapes = ", ".join(f"Box::new(Shape{n}::new({n} as f64))" for n in range(count))
    yield f"pub fn all() -> Vec<Box<dyn Shape>> {{ vec![{shapes}] }}"


_RUST = """
/// The ~ of number @.
#[derive(Debug, Clone, PartialEq)]
pub struct Shape@ { side: f64, notes: Vec<String>, by_name: BTreeMap<String, usize> }
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind@ { None, Some(u32), Other { left: i64, right: i64 } }
impl Shape@ {
    pub fn new(side: f64) -> Self { Shape@ { side, notes: vec!["~".to_string(); $], by_name: BTreeMap::new() } }
    pub fn note(&mut self, text: &str) -> Option<usize> {
        self.notes.push(format!("{text} of {:?}", self.side));
        for (at, word) in text.split_whitespace().enumerate() { *self.by_name.entry(word.into()).or_insert(0) += at; }
        self.by_name.values().copied().filter(|&n| n % $ == 0).max()
    }
    pub fn counted<T: Copy + Into<i64>>(&self, values: &[T]) -> HashMap<i64, Kind@> {
        values.iter().map(|&v| { let n: i64 = v.into(); (n % $, match n { 0 => Kind@::None,
            1..=9 => Kind@::Some(n as u32), _ => Kind@::Other { left: n, right: -n } }) }).collect()
    }
}
impl Shape for Shape@ {
    fn area(&self, scale: f64) -> f64 { (0..$).map(|i| if i % 3 == 1 { self.side * scale } else { i as f64 }).sum() }
    fn name(&self) -> String { let mut words = self.notes.clone(); words.sort(); words.dedup(); words.join("-") }
}"""


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


def site(count: int) -> Iterator[str]:
    """What a web server fills in on the way out: one page of parts, each with variables and conditions."""
    for n in range(count):
        word = WORDS[n % len(WORDS)]
        yield f"<!--# set var=\"v{n % 40}\" value=\"{word} {n} $v{(n + 1) % 40}\" --><p id=\"{word}{n}\">"
        yield f"<!--# if expr=\"$request_uri = /.*{n % 7}.*/\" -->{word}<!--# else -->not {word}<!--# endif -->"
        yield f"<!--# echo var=\"v{n % 40}\" default=\"none\" --></p>"


KINDS = {"records": records, "cpp": cpp, "templates": templates, "smt": smt, "bits": bits, "quantifiers": quantifiers,
         "rust": rust, "sql": sql, "history": history, "project": project, "pages": pages, "site": site}


def main(kind: str, size: str, *name: str) -> None:
    for text in KINDS[kind](int(size), *name):
        sys.stdout.write(text + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
