"""Microsoft's ntdll.dll is read, not run: its two kinds of heap part behind the functions that reheap replaces."""

import contextlib
import io
import shutil
import unittest

from harness import ROOT, FOLDER, fetch, main, need
import heap_entries  # in the harness's path

DISASSEMBLER = "llvm-objdump-19"


class Ntdll(unittest.TestCase):
    def told(self, file) -> tuple[bool, str]:
        with contextlib.redirect_stdout(io.StringIO()) as lines:
            whole = heap_entries.report(heap_entries.Code(file, need(DISASSEMBLER)))
        return whole, lines.getvalue()

    def test_every_block_comes_by_the_entries(self):
        whole, lines = self.told(fetch("llvm") / "ntdll.dll")
        self.assertTrue(whole, lines)
        self.assertEqual(lines.count("asks at +0x"), 12, lines)
        self.assertNotIn("is not there", lines)

    def test_a_way_around_is_seen(self):
        """As if RtlFreeHeap asked for another mark."""
        file = FOLDER / "ntdll-without.dll"
        shutil.copyfile(fetch("llvm") / "ntdll.dll", file)
        image = heap_entries.Image(file.read_bytes())
        entry = image.offset(image.exported_functions()["RtlFreeHeap"])
        at = image.bytes.index(bytes.fromhex("EEDDEEDD"), entry)
        image.bytes[at] ^= 1
        file.write_bytes(image.bytes)
        self.addCleanup(file.unlink)
        self.assertFalse(self.told(file)[0])


if __name__ == "__main__":
    main()
