#!/usr/bin/env python3
"""Shows that contract.py and check_link.py pass a good library and fail on one with a single fault; checks their
facts."""

import functools
import pathlib
import re
import subprocess
import tempfile
import unittest

import check_link
import coff
import contract
import fake_crt

CRT = contract.Crt()
DEBUG = {name for each in CRT.objects if "only" in each for name in each["defines"]}
NEW = CRT.families["new and delete"]
HEAP = sorted(CRT.replaceable() - DEBUG - set(NEW))
PAIR = ["_msize", "_msize_base"]
CORE = "?allocate@rh@@YAPEAX_K@Z"
IMPORTS = contract.import_names()


@functools.cache
def static_crt(debug: bool) -> list[pathlib.Path]:
    folder = tempfile.TemporaryDirectory()
    unittest.addModuleCleanup(folder.cleanup)
    return fake_crt.build(pathlib.Path(folder.name), CRT, debug)


@functools.cache
def assembled(name: str, **parts: tuple) -> pathlib.Path:
    """Most libraries differ from the good one in one object: the others are made once."""
    folder = tempfile.TemporaryDirectory()
    unittest.addModuleCleanup(folder.cleanup)
    return fake_crt.assemble(pathlib.Path(folder.name), name, **parts)


class LibraryTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def library(self, heap=HEAP, more=(), **changes) -> pathlib.Path:
        """A good library, but for what is changed: an object for the heap's names, one for new and delete, a core."""
        objects = {"heap.obj": {"defines": heap, "needs": [CORE, "_errno"]},
                   "new.obj": {"defines": NEW, "needs": [CORE]},
                   "core.obj": {"defines": [CORE, "rh_malloc"],
                                "needs": ["VirtualAlloc", "NtClose", "memcpy", "_callnewh"]}}
        objects |= {name: objects.get(name, {}) | change for name, change in more}
        objects["core.obj"] |= changes
        made = [assembled(name, **{part: tuple(words) for part, words in parts.items()})
                for name, parts in objects.items()]
        return fake_crt.archive(self.folder / "reheap.lib", made)

    def problems(self, library: pathlib.Path) -> list[str]:
        return contract.problems(CRT, coff.library(library), IMPORTS)

    def linking(self, library: pathlib.Path, debug: bool = False) -> list[str]:
        return check_link.problems(CRT, library, static_crt(debug), debug)

    def one(self, words: str, library: pathlib.Path) -> None:
        found = self.problems(library)
        self.assertEqual(len(found), 1, found)
        self.assertIn(words, found[0])


class Contract(LibraryTest):
    def test_a_good_library(self):
        self.assertEqual(self.problems(self.library()), [])

    def test_several_objects(self):
        rest = [name for name in HEAP if name not in PAIR]
        size = ("size.obj", {"defines": PAIR})
        found = self.problems(self.library(rest, [size]))
        self.assertEqual(found, [f"{name} in size.obj does not come with malloc" for name in PAIR])
        led = ("heap.obj", {"directives": ["/INCLUDE:_msize"]})
        self.assertEqual(self.problems(self.library(rest, [size, led])), [])

    def test_half_a_group(self):
        for title, names in CRT.groups():
            if names[0] not in DEBUG and names != NEW:
                for absent in names:
                    if absent != "malloc":
                        with self.subTest(absent):
                            self.one(f"missing: {absent}", self.library([name for name in HEAP if name != absent]))

    def test_half_of_new_and_delete(self):
        self.one(f"missing: {NEW[3]}", self.library(more=[("new.obj", {"defines": NEW[:3] + NEW[4:]})]))

    def test_half_of_the_debug_heap(self):
        self.one("of debug_heap.obj's names it defines only some", self.library(HEAP + ["_malloc_dbg", "_free_dbg"]))

    def test_a_group_in_two_objects(self):
        rest = [name for name in HEAP if name != "_msize_base"]
        led = ("heap.obj", {"directives": ["/INCLUDE:_msize_base"]})
        self.one("lie in several objects", self.library(rest, [("size.obj", {"defines": ["_msize_base"]}), led]))

    def test_no_malloc(self):
        self.one("does not define malloc", self.library([], [("new.obj", {"defines": []})]))

    def test_a_name_twice(self):
        self.one("rh_malloc is defined 2 times", self.library(more=[("x.obj", {"defines": ["rh_malloc"]})]))

    def test_names_that_every_program_has(self):
        for title, names in CRT.untouchable():
            self.one(f"but {title} is in every program", self.library(defines=[CORE, names[-1]]))

    def test_names_that_are_not_ours(self):
        for name in ("memset", "_tls_used", "?helper@@YAXXZ"):
            self.one(f"defines {name}", self.library(defines=[CORE, name]))

    def test_needs(self):
        for name in ("CreateFontA", "__imp_RegOpenKeyExW", "printf", "__imp__errno"):
            self.one(f"needs {name}", self.library(needs=[name]))

    def test_directives(self):
        self.one("asks for libcmt", self.library(directives=["/DEFAULTLIB:libcmt"]))
        self.one("asks for MSVCRT.lib", self.library(directives=['/DEFAULTLIB:"MSVCRT.lib"']))
        dynamic = '/FAILIFMISMATCH:"RuntimeLibrary=MD_DynamicRelease"'
        self.one("insists on RuntimeLibrary=MD", self.library(directives=[dynamic]))


class Linking(LibraryTest):
    def test_a_good_library(self):
        for debug in (False, True):
            self.assertEqual(self.linking(self.library(), debug), [])

    def test_the_whole_debug_heap(self):
        self.assertEqual(self.linking(self.library(sorted({*HEAP, *DEBUG})), debug=True), [])

    def test_half_a_group_is_a_duplicate(self):
        """The control: both linkers must refuse what the contract calls a broken group."""
        for name in ("_msize", "_recalloc", "_aligned_free", "_query_new_mode"):
            group = next(names for _, names in CRT.groups() if name in names)
            library = self.library([each for each in HEAP if each not in group or each == name])
            found = self.linking(library)
            self.assertTrue(any("duplicate symbol" in each and each.endswith(f" {name}") for each in found), found)
            self.assertIn(f"link.exe would have two of {name}", found)

    def test_half_of_expand_shows_in_a_debug_program(self):
        library = self.library([name for name in HEAP if name != "_expand_base"])
        self.assertIn("link.exe would have two of _expand", self.linking(library, debug=True))

    def test_half_of_the_debug_heap_is_a_duplicate(self):
        library = self.library(HEAP + ["_malloc_dbg"])
        self.assertTrue(any("duplicate symbol: _malloc_dbg" in each for each in self.linking(library, debug=True)))

    def test_the_search_order_of_link_exe(self):
        """Groups that do not come with malloc: lld-link would still find them, link.exe takes libucrt's."""
        pair = ["_recalloc", "_recalloc_base"]
        library = self.library([name for name in HEAP if name not in pair], [("recalloc.obj", {"defines": pair})])
        self.assertEqual(self.linking(library), [f"link.exe would take {name} from libucrt" for name in pair])
        self.assertEqual(len(self.problems(library)), 2)

    def test_an_object_that_only_names_the_library(self):
        """Why there is no hook of rpmalloc's form: an object that defines no malloc is never looked at."""
        library = self.library()
        named = fake_crt.assemble(self.folder, "rpmalloc.obj", ["rh_hook"], directives=[f'/DEFAULTLIB:{library}'])
        support = fake_crt.archive(self.folder / "LLVMSupport.lib", [named])
        program = fake_crt.assemble(self.folder, "program.obj", ["main"], ["malloc"])
        homes, errors = check_link.lld(self.folder, [program, support, *static_crt(False)])
        self.assertEqual((homes.get("malloc"), errors), ("libucrt", []))


class Facts(unittest.TestCase):
    def test_each_fact_has_a_source(self):
        for each in CRT.objects:
            self.assertTrue(each["sources"], each["object"])
            self.assertLessEqual(set(each["sources"]), set(CRT.facts["sources"]))

    def test_no_name_is_in_two_objects(self):
        names = [name for each in CRT.objects for name in each["defines"]]
        self.assertEqual(len(names), len(set(names)))

    def test_the_groups_are_those_known_to_bite(self):
        groups = [set(names) for _, names in CRT.groups()]
        for names in ("_msize _msize_base", "_recalloc _recalloc_base", "_expand _expand_base",
                      "_set_new_mode _query_new_mode"):
            self.assertIn(set(names.split()), groups)
        self.assertEqual(len([name for name in HEAP if name.startswith("_aligned_")]), 8)


class Reading(LibraryTest):
    def test_as_llvm_nm_reads(self):
        source = self.folder / "x.cpp"
        source.write_text("inline int twice() { static int n; return ++n; }\nint once() { return twice(); }\n"
                          "int data; extern int elsewhere; int asks() { return elsewhere; }\n", encoding="utf-8")
        for flags in ([], ["-ffunction-sections", "-fdata-sections"]):
            compiled = self.folder / "x.obj"
            command = ["clang++-19", f"--target={fake_crt.TARGET}", "-O0", "-c", *flags, source, "-o", compiled]
            subprocess.run(command, check=True)
            library = fake_crt.archive(self.folder / "x.lib", [compiled])
            found = coff.library(library)[0]
            listed = subprocess.run(["llvm-nm-19", "-g", library], capture_output=True, text=True, check=True).stdout
            lines = [line.split() for line in listed.splitlines() if re.match(r"[ 0-9a-f]{8,16} \w ", line)]
            self.assertEqual(found.needs, {words[-1] for words in lines if words[-2] == "U"})
            self.assertEqual(found.defines | found.shares, {words[-1] for words in lines if words[-2] != "U"})
            self.assertIn("?once@@YAHXZ", found.defines)
            self.assertIn("?twice@@YAHXZ", found.shares)
            self.assertEqual(found.machine, "x86_64")

    def test_what_is_no_library(self):
        other = self.folder / "other.lib"
        for content in (b"", b"text", b"!<arch>\n"):
            other.write_bytes(content)
            with self.assertRaises(coff.Unreadable):
                coff.library(other)


if __name__ == "__main__":
    unittest.main()
