"""tar and xz: the archives they make have to be the same, and to unpack to what went in."""

from harness import ProgramTest, main

TREE = "/usr/include/c++"


class Archives(ProgramTest):
    def test_tar_and_xz(self):
        for program in ("tar", "xz"):
            self.assert_reached(program)
        pack = (f"tar --create --sort=name --owner=0 --group=0 --numeric-owner "
                f"--directory={TREE} . > tree.tar && xz --threads=2 --block-size=1MiB -2 --keep tree.tar && "
                "mkdir out && tar --extract --xz --file=tree.tar.xz --directory=out && "
                "tar --compare --file=tree.tar --directory=out && "
                "(cd out && find . -type f | sort | xargs sha256sum)")
        self.compare(["sh", "-c", pack], files=("tree.tar", "tree.tar.xz"), processes=6)


if __name__ == "__main__":
    main()
