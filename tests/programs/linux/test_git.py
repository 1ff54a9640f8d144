"""git: history made by fast-import, packed, read, diffed, cloned."""

import pathlib
import random

from harness import ProgramTest, main

COMMITS, FILES = 400, 60

SCRIPT = """set -e
git init -q --initial-branch=main repository
cd repository
git fast-import --quiet < ../history
git checkout -q main
git log --stat --format='%H %an %ad %s' main
git log --graph --oneline --all | tail -50
git diff --stat main~200 main
git diff -M -w main~40 main
git blame --line-porcelain main -- file7.txt
git grep -n 'word1[0-9]*7' main~10 | head -500
git rev-list --objects --all | sort
git repack -q -a -d -f --depth=50 --window=100 --threads=1
git gc -q --prune=now
git fsck --full --strict
git verify-pack -v .git/objects/pack/*.idx
cat .git/objects/pack/*.pack | git hash-object --stdin
cd ..
git clone -q --no-local repository clone
git -C clone log -1 --format=%H
git -C clone archive --format=tar main | git hash-object --stdin
git -C clone merge-base main~7 main~90
git -C clone rebase -q main~3 --onto main~5 2>/dev/null || git -C clone status --short
"""


def history() -> bytes:
    """A fast-import stream: the same for the same numbers."""
    chosen = random.Random(7)
    lines = {f"file{at}.txt": [f"line {line} word{chosen.randrange(10**6)}" for line in range(200)]
             for at in range(FILES)}
    parts = []
    for commit in range(COMMITS):
        message = f"Change {commit}\n"
        parts.append(f"commit refs/heads/main\nauthor A U Thor <author@example.com> {1600000000 + commit * 3600} "
                     f"+0000\n"
                     f"committer A U Thor <author@example.com> {1600000000 + commit * 3600} +0000\n"
                     f"data {len(message)}\n{message}\n")
        for name in chosen.sample(sorted(lines), 5):
            text = lines[name]
            text[chosen.randrange(len(text))] = f"changed by {commit} word{chosen.randrange(10**6)}"
            if commit % 7 == 0:
                text.insert(chosen.randrange(len(text)), f"new in {commit}")
            content = "\n".join(text) + "\n"
            parts.append(f"M 100644 inline {name}\ndata {len(content)}\n{content}\n")
    return "".join(parts).encode()


class Git(ProgramTest):
    def test_a_history(self):
        self.assert_reached("git")
        stream = history()

        def prepare(work: pathlib.Path):
            (work / "history").write_bytes(stream)
            (work / "script").write_text(SCRIPT)

        identity = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_PAGER": "cat"}
        for role in ("AUTHOR", "COMMITTER"):
            identity |= {f"GIT_{role}_NAME": "A U Thor", f"GIT_{role}_EMAIL": "author@example.com",
                         f"GIT_{role}_DATE": "1700000000 +0000"}
        result = self.compare(["sh", "script"], prepare=prepare, processes=30, **identity)
        self.assertGreater(len(result.output), 5 * 10**5)


if __name__ == "__main__":
    main()
