"""Which allocators are found and taken, and what is said of those that cannot be."""

import os
import pathlib

import fakes
import pytest

from reheap_lab import allocators, elf
from reheap_lab.allocators import Allocator
from reheap_lab.errors import UsageError

HERE = elf.Kind(64, 62, True)


def test_those_in_the_loaders_folders_are_found_and_the_first_name_counts(fake, tmp_path):
    near, far = tmp_path / "near", tmp_path / "far"
    for folder, name in ((near, "libjemalloc.so.2"), (far, "libjemalloc.so.1"), (far, "libtcmalloc.so.4"),
                         (far, "libtcmalloc_minimal.so.4.5")):
        folder.mkdir(exist_ok=True)
        (folder / name).write_bytes(fakes.elf_bytes())
    found = allocators.installed([near, far], HERE)
    assert list(found) == ["system", "jemalloc", "tcmalloc"]
    assert found["jemalloc"].libraries == (near / "libjemalloc.so.2",)
    assert allocators.with_version(found["jemalloc"]).version == "2"
    assert found["tcmalloc"].libraries[0].name == "libtcmalloc_minimal.so.4.5"


def test_what_cannot_be_loaded_is_not_found(fake, tmp_path):
    (tmp_path / "libjemalloc.so.2").write_bytes(fakes.elf_bytes(32, 3))
    (tmp_path / "libmimalloc.so").write_text("INPUT(libmimalloc.so.2)")
    (tmp_path / "libhoard.so").mkdir()
    assert list(allocators.installed([tmp_path], HERE)) == ["system"]


def test_our_own_comes_from_the_package_or_the_variable(fake, tmp_path, monkeypatch):
    packaged = tmp_path / "native" / "lib" / "libreheap.so"
    packaged.write_bytes(fakes.elf_bytes())
    assert allocators.installed([], HERE)["reheap"].libraries == (packaged,)
    named = fake.library("own")
    monkeypatch.setenv("REHEAP_LIBRARY", str(named))
    assert allocators.installed([], HERE)["reheap"].libraries == (named,)
    monkeypatch.setenv("REHEAP_LIBRARY", str(tmp_path / "gone.so"))
    with pytest.raises(UsageError, match="REHEAP_LIBRARY: there is no .*gone.so"):
        allocators.installed([], HERE)


def test_the_choice_keeps_its_order_and_takes_any_library(fake):
    path = fake.library("any")
    chosen = allocators.choose(f"mine={path}, system ,again=system", HERE, [])
    assert [(a.name, a.libraries) for a in chosen] == [("mine", (path,)), ("system", ()), ("again", ())]


def test_what_an_allocator_is_told_stands_behind_it(fake):
    path = fake.library("any")
    wanted = f"system,MALLOC_ARENA_MAX=1,je={path},MALLOC_CONF=a:1,b:2,OTHER_X=,plain=je,same=system"
    with pytest.raises(UsageError, match="plain: there is no .*/je"):
        allocators.choose(wanted, HERE, [])
    chosen = allocators.choose(wanted.replace("plain=je,", ""), HERE, [])
    assert [(a.name, dict(a.variables)) for a in chosen] == [
        ("system", {"MALLOC_ARENA_MAX": "1"}), ("je", {"MALLOC_CONF": "a:1,b:2", "OTHER_X": ""}), ("same", {})]
    assert chosen[1].launch(["x"], None).env == {"MALLOC_CONF": "a:1,b:2", "OTHER_X": "", "LD_PRELOAD": str(path)}
    with pytest.raises(UsageError, match="--with MALLOC_CONF=a:1: a variable stands behind the allocator"):
        allocators.choose("MALLOC_CONF=a:1,system", HERE, [])


def test_an_installed_one_may_be_given_another_name(fake, tmp_path):
    (tmp_path / "libjemalloc.so.2").write_bytes(fakes.elf_bytes())
    one, other = allocators.choose("jemalloc,je=jemalloc,MALLOC_CONF=narenas:1", HERE, [tmp_path])
    assert one.libraries == other.libraries and other.name == "je" and not one.variables


def test_the_same_library_twice_under_two_names(fake):
    path = fake.library("any")
    assert len(allocators.choose(f"a={path},b={path}", HERE, [])) == 2


@pytest.mark.parametrize("wanted, said", [
    ("nonsense", "no allocator is called nonsense. There are: system; any library: --with nonsense=PATH"),
    ("jemalloc", "jemalloc is not installed here. Install it, or name its library: --with jemalloc=PATH"),
    ("system,system", "named twice"),
    (",", "names no allocator"),
    ("a=", "name=/path/to/lib.so"),
    ("a=/nowhere/x.so", "a: there is no /nowhere/x.so"),
    ("a=/", "a: /: Is a directory"),
])
def test_a_choice_that_is_none(fake, wanted, said):
    with pytest.raises(UsageError, match=said):
        allocators.choose(wanted, HERE, [])


@pytest.mark.parametrize("content, said", [
    (fakes.elf_bytes(32, 3), "for 32-bit i386, the command for 64-bit x86-64"),
    (fakes.elf_bytes(64, 183), "for 64-bit aarch64, the command for 64-bit x86-64"),
    (fakes.elf_bytes(64, 9999), "for 64-bit machine 9999"),
    (b"INPUT(libx.so)", "is no shared library .not an ELF file"),
    (b"", "is no shared library"),
    (b"\x7fELF\x09" + bytes(30), "is no shared library"),
])
def test_a_library_of_the_wrong_kind(fake, tmp_path, content, said):
    path = tmp_path / "odd.so"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=said):
        allocators.choose(f"odd={path}", HERE, [])


def test_a_library_that_cannot_be_read(fake, monkeypatch):
    path = fake.library("secret")
    path.chmod(0)
    if os.geteuid() == 0:  # root reads everything: the refusal is made up

        def refuse(_):
            raise PermissionError(13, "Permission denied")
        monkeypatch.setattr(elf, "kind", refuse)
    with pytest.raises(UsageError, match="secret: .* cannot be read. Allow it: chmod a\\+r"):
        allocators.choose(f"secret={path}", HERE, [])


def test_a_path_the_loader_would_cut_in_two(fake, tmp_path):
    path = tmp_path / "a b.so"
    path.write_bytes(fakes.elf_bytes())
    with pytest.raises(UsageError, match="colon or a blank"):
        allocators.choose(f"a={path}", HERE, [])


def test_this_process_has_a_kind():
    assert elf.own().bits in (32, 64)


# ---- launch and proof ---------------------------------------------------------------------------

def test_the_witness_stands_before_the_allocator_and_that_before_what_was_preloaded(fake, monkeypatch):
    monkeypatch.setenv("LD_PRELOAD", "/theirs.so")
    launch = Allocator("a", (pathlib.Path("/a.so"),)).launch(["x"], pathlib.Path("/evidence"))
    first, second, third = launch.env["LD_PRELOAD"].split(":")
    assert (second, third) == ("/a.so", "/theirs.so") and first.endswith("libreheap-witness.so")
    assert launch.env["REHEAP_WITNESS"] == "/evidence" and launch.argv == ["x"]


def test_a_run_that_proves_nothing_has_no_witness(fake):
    assert Allocator("a", (pathlib.Path("/a.so"),)).launch(["x"], None).env == {"LD_PRELOAD": "/a.so"}
    assert allocators.system().launch(["x"], None).env == {}


def test_a_link_to_the_library_is_the_library(tmp_path):
    real, link = tmp_path / "a.so.1", tmp_path / "a.so"
    real.touch()
    link.symlink_to(real)
    assert Allocator("a", (link,)).objection({"malloc": str(real)}) is None
