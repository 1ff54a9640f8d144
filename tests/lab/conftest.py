"""What several tests need."""

import fakes
import on_wine
import pytest

from reheap_lab import native, runner, windows


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


@pytest.fixture
def no_wine(tmp_path, monkeypatch) -> list[str]:
    """A command for Windows, where an examination finds what it always finds."""
    for part in windows.PARTS:
        on_wine.pe_file(tmp_path / part, windows.X86_64)
    monkeypatch.setenv("REHEAP_WINE", "/bin/true")
    monkeypatch.setenv("REHEAP_LAB_WINDOWS", str(tmp_path))
    found = {"program": {"runtime": "ucrt 10"},
             "report": {"overridden": True, "version": "1.2",
                        "replaced": ["ntdll.dll at 0x1: replaced heap (14)", "x: left"]}}
    monkeypatch.setattr(windows.Program, "examine", lambda self, library: found)
    return [str(tmp_path / "reheap-runner.exe"), "word"]
