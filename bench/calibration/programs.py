"""The real programs whose traces are replayed: how each is started, and how one that serves is driven and stopped."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from calibration.shared import HERE, RESULTS, compile_program, run
from corpus import link_command, prepare_corpus
from registries import need_tool
from reheap_lab.errors import LabError

START_TRIES, START_PAUSE_S = 300, 0.1


@dataclass(frozen=True)
class Program:
    name: str
    command: list[str]
    environment: dict[str, str] = field(default_factory=dict)
    drive: list[str] = field(default_factory=list)  # for a server: what loads it, and then it is stopped
    ready: list[str] = field(default_factory=list)  # succeeds once the server answers
    brings_allocator: bool = False  # is linked with one of its own


def link() -> Program:
    return Program("link", link_command(prepare_corpus(), RESULTS / "linked.so"))


def cpython() -> Program:
    # Its own small-block allocator stands aside, so that every object is a malloc.
    python = os.path.realpath(sys.executable)  # not a link or a script that finds it
    return Program("cpython", [python, "-S", str(HERE / "texts.py"), "60"], {"PYTHONMALLOC": "malloc"})


def sixteen() -> Program:
    return Program("sixteen", [str(compile_program("sixteen.c", name="sixteen")), "500000"])


def redis() -> Program:
    server, client = need_tool("redis-server", "redis-server"), need_tool("redis-benchmark", "redis-tools")
    socket = str(RESULTS / "redis.sock")
    quiet = ["--save", "", "--appendonly", "no", "--port", "0", "--unixsocket", socket, "--loglevel", "warning"]
    load = [client, "-s", socket, "-q", "-n", "50000", "-r", "20000", "-d", "200", "-t", "set,get,lpush,lpop,hset"]
    ready = [need_tool("redis-cli", "redis-tools"), "-s", socket, "ping"]
    return Program("redis", [server, *quiet], {}, load, ready, brings_allocator=True)


PROGRAMS: dict[str, Callable[[], Program]] = {"link": link, "redis": redis, "cpython": cpython, "sixteen": sixteen}


def run_wrapped(program: Program, wrapper: list[str]) -> None:
    """Runs the program behind `wrapper`, to its end; a server is driven first."""
    command, environment = [*map(str, wrapper), *program.command], os.environ | program.environment
    if not program.drive:
        run(command, env=environment)
        return
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, process_group=0) as server:
        with _ended(server):
            _wait_for(program, server)
            run(program.drive)
            server.terminate()  # whoever wraps the server passes it on


@contextlib.contextmanager
def _ended(server: subprocess.Popen):
    try:
        yield
        server.wait(60)
    finally:
        if server.poll() is None:
            os.killpg(server.pid, signal.SIGKILL)


def _wait_for(program: Program, server: subprocess.Popen) -> None:
    for _ in range(START_TRIES):
        if server.poll() is not None:
            raise LabError(f"{program.name} ended by itself with status {server.returncode}")
        if subprocess.run(program.ready, capture_output=True).returncode == 0:
            return
        time.sleep(START_PAUSE_S)
    raise LabError(f"{program.name} did not answer within {START_TRIES * START_PAUSE_S:.0f} s")
