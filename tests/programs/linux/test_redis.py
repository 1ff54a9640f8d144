"""redis-server under redis-benchmark, and its answers to the same commands.

Debian's redis is linked against libjemalloc.so: it calls malloc by that name, so the preloaded one comes first.
reheap doctor and the server's own statistics prove that; they count the very blocks the server holds.
"""

import contextlib
import pathlib
import random
import re
import subprocess
import sys
import time

from harness import OTHER_LIBRARY, PATIENCE, ProgramTest, environment, main, need

KEYS = 3000


def commands() -> list[str]:
    """The same for both servers, and without what a random hash seed decides."""
    chosen = random.Random(11)
    made = []
    for at in range(KEYS):
        text = "x" * chosen.randrange(300)
        made += [f"SET s:{at} {at}-{text}", f"APPEND s:{chosen.randrange(at + 1)} more",
                 f"HSET h:{at % 50} field{at} {text}z", f"ZADD z:{at % 20} {chosen.randrange(10**6)} member{at}",
                 f"RPUSH l:{at % 30} {text}y {at}", f"SADD t:{at % 10} {chosen.randrange(5000)}",
                 f"XADD x:{at % 5} {at + 1}-0 n {at} text {text}w",
                 f"SETRANGE r:{at % 7} {chosen.randrange(60000)} {at}",
                 f"PFADD p:{at % 3} {at} {chosen.randrange(10**6)}"]
        if at % 5 == 0:
            made += [f"DEL s:{chosen.randrange(at + 1)}", f"LPOP l:{at % 30} 2", f"ZREMRANGEBYRANK z:{at % 20} 0 1"]
        if at % 100 == 99:
            made += [f"ZRANGE z:{at % 20} 0 -1 WITHSCORES", f"LRANGE l:{at % 30} 0 -1", f"SORT t:{at % 10} ALPHA",
                     f"XRANGE x:{at % 5} - + COUNT 50", f"GET s:{at - 3}", f"HGET h:{at % 50} field{at}",
                     f"PFCOUNT p:{at % 3}", f"STRLEN r:{at % 7}",
                     f"EVAL 'local t = {{}} for i = 1, 500 do t[i] = redis.sha1hex(i .. ARGV[1]) end return t' 0 {at}"]
    return made + ["DBSIZE", "DEBUG DIGEST", "DEBUG RELOAD", "DEBUG DIGEST", "BGREWRITEAOF", "DBSIZE"]


class Redis(ProgramTest):
    @contextlib.contextmanager
    def server(self, on_reheap: bool):
        """A server on a socket in the work folder, stopped cleanly at the end."""
        words = [need("redis-server"), "--port", "0", "--unixsocket", "socket", "--save", "", "--appendonly", "yes",
                 "--enable-debug-command", "local", "--dir", ".", "--loglevel", "warning", "--databases", "1",
                 "--appendfsync", "no"]
        self.statistics = self.folder / "statistics.json"
        if on_reheap:
            words = self.under_reheap(words, (f"--stats={self.statistics}",))
        self.start_in_work(None)
        with subprocess.Popen(words, cwd=self.work, env=environment(), stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT) as server:
            try:
                self.wait_for(server)
                yield server
                self.ask("SHUTDOWN NOSAVE")
                self.assertEqual(server.wait(60), 0, "the server's end")
            finally:
                if server.poll() is None:
                    server.kill()
            self.log = server.stdout.read().decode(errors="replace")

    def wait_for(self, server):
        for _ in range(500):
            if server.poll() is not None:
                self.fail(f"redis-server ended: {server.stdout.read().decode()}")
            if (self.work / "socket").exists() and self.ask("PING") == "PONG\n":
                return
            time.sleep(0.02)
        self.fail("redis-server did not answer")

    def ask(self, lines: str) -> str:
        # A socket's name has to be short, so it is named from its folder.
        done = subprocess.run([need("redis-cli"), "-s", "socket"], input=lines, capture_output=True, text=True,
                              cwd=self.work, env=environment(), timeout=PATIENCE)
        return done.stdout

    def resident(self, server) -> int:
        """KiB."""
        text = pathlib.Path(f"/proc/{server.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+) kB", text).group(1))

    def benchmark(self) -> str:
        tests = "ping,set,get,incr,lpush,rpush,lpop,sadd,hset,spop,zadd,zpopmin,lrange_100,mset"
        words = [need("redis-benchmark"), "-s", "socket", "-q", "-n", "20000", "-c", "20", "-P", "4", "-r", "20000",
                 "-d", "200", "-t", tests]
        done = subprocess.run(words, capture_output=True, text=True, cwd=self.work, env=environment(), timeout=PATIENCE)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        rates = re.findall(r"^(?:.*\r)?([A-Z].*): ([\d.]+) requests per second", done.stdout, re.MULTILINE)
        self.assertGreaterEqual(len(rates), 14, done.stdout)
        return ", ".join(f"{name.split()[0]} {float(rate):.0f}" for name, rate in rates)

    def exercise(self, on_reheap: bool) -> str:
        name = "reheap" if on_reheap else "the system's choice"
        with self.server(on_reheap) as server:
            rates = self.benchmark()
            after_benchmark = self.resident(server)
            self.ask("FLUSHALL\n")
            answers = self.ask("\n".join(commands()) + "\n")
            errors = re.findall(r"errorstat_\w+:count=\d+", self.ask("INFO errorstats\n"))
            self.wait_for_children(server)
            print(f"redis-server on {name}: {after_benchmark} KiB resident after the benchmark, "
                  f"{self.resident(server)} KiB at the end; requests a second: {rates}", file=sys.stderr)
            self.assertEqual(errors, [])
            if on_reheap and not OTHER_LIBRARY:
                self.assert_mapped(server)
        if on_reheap and not OTHER_LIBRARY:
            figures = self.served_at_exit(self.statistics)
            self.assertEqual(figures["pid"], server.pid)
            self.assertGreater(figures["committed_peak"], 10**6)
        return answers

    def wait_for_children(self, server):
        """The rewrite of the log runs in a forked child."""
        for _ in range(1000):
            if "aof_rewrite_in_progress:0" in self.ask("INFO persistence\n"):
                break
            time.sleep(0.02)
        status = self.ask("INFO persistence\n")
        self.assertIn("aof_last_bgrewrite_status:ok", status)

    def test_same_answers(self):
        self.assert_reached("redis-server", "--version")
        for program in ("redis-cli", "redis-benchmark"):
            self.assert_reached(program)
        one = self.exercise(on_reheap=False)
        other = self.exercise(on_reheap=True)
        self.assertGreater(len(one), 10**6)
        self.assert_same_bytes("answers", one.encode(), other.encode())


if __name__ == "__main__":
    main()
