"""What several tests need."""

import fakes
import on_wine
import pytest

from reheap_lab import native, runner


@pytest.fixture
def fake(tmp_path, monkeypatch) -> fakes.Fake:
    """A lab whose runner and libraries are made up."""
    (tmp_path / "native" / "lib").mkdir(parents=True)
    (tmp_path / "native" / "lib" / "libreheap-witness.so").write_bytes(fakes.elf_bytes())
    monkeypatch.setenv(native.VARIABLE, str(tmp_path / "native"))
    for name in ("LD_PRELOAD", "REHEAP_LIBRARY"):
        monkeypatch.delenv(name, raising=False)
    made = fakes.Fake(tmp_path)
    monkeypatch.setattr(runner, "start", made.start)
    return made


@pytest.fixture
def here(monkeypatch):
    """The lab uses this repository's Wine prefix and build."""
    monkeypatch.setenv("REHEAP_WINE", f"'{on_wine.WINE}' --become")
    monkeypatch.setenv("REHEAP_LAB_WINDOWS", str(on_wine.BUILD))
