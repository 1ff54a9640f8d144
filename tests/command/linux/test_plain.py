"""The part of the command that runs first may call nothing of the C and C++ libraries (command/linux/early/)."""

import os
import re
import subprocess
import unittest

from support import COMMAND

OBJECTS = os.environ["REHEAP_TEST_PLAIN"].split(":")


class Plain(unittest.TestCase):
    def symbols(self, *options: str) -> set[str]:
        listed = subprocess.run(["nm", "--format=posix", *options, *OBJECTS], capture_output=True, text=True,
                                check=True)
        return {line.split()[0] for line in listed.stdout.splitlines() if re.match(r"\S+ [A-Za-z]", line)}

    def test_it_calls_only_itself(self):
        defined = self.symbols("--defined-only")
        self.assertIn("reheap_early_start", defined)
        # The ordinary start is where it leads when it has nothing to do.
        self.assertEqual(self.symbols("--undefined-only") - defined, {"_start"})

    def test_it_has_no_constructors_and_no_thread_locals(self):
        listed = subprocess.run(["objdump", "--section-headers", *OBJECTS], capture_output=True, text=True, check=True)
        names = set(re.findall(r"^\s+\d+ (\S+)", listed.stdout, re.MULTILINE))
        self.assertIn(".text", names)
        self.assertFalse({name for name in names if name.startswith((".init_array", ".ctors", ".tdata", ".tbss"))})

    def test_it_comes_first(self):
        header = subprocess.run(["readelf", "--file-header", COMMAND], capture_output=True, text=True, check=True)
        entry = int(re.search(r"Entry point address:\s+(0x[0-9a-f]+)", header.stdout).group(1), 16)
        listed = subprocess.run(["nm", "--format=posix", COMMAND], capture_output=True, text=True, check=True)
        where = {line.split()[0]: int(line.split()[2], 16) for line in listed.stdout.splitlines()
                 if len(line.split()) > 2}
        self.assertEqual(entry, where["reheap_entry"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
