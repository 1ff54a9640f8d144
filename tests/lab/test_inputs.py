"""What makes the ready suite's inputs: the same bytes each time, which say what they should."""

import http.server
import socketserver
import subprocess
import sys
import threading

import pytest

from reheap_lab.suite import command, file

INPUTS = command.READY_MADE.parent / "inputs"


def made(*words: str) -> bytes:
    return subprocess.run([sys.executable, INPUTS / "make.py", *words], check=True, capture_output=True).stdout


@pytest.mark.parametrize("kind, size, has", [
    ("templates", 3, b"use_2"), ("bits", 32, b"QF_BV"), ("quantifiers", 5, b"forall"), ("rust", 3, b"struct Shape2"),
    ("site", 3, b"<!--#"), ("smt", 5, b"QF_LIA"), ("cpp", 3, b"use_2"), ("records", 2, b'"id": 1'),
])
def test_the_same_bytes_twice(kind, size, has):
    first = made(kind, str(size))
    assert has in first and first == made(kind, str(size))
    assert len(made(kind, str(2 * size))) > len(first) or kind == "bits"


def test_the_product_has_the_factors_that_it_is_made_of():
    text = made("bits", "16").decode()
    product = int(text.split("(_ bv")[1].split()[0])
    assert product == 251 * 223


def test_every_input_that_a_case_names_is_there():
    for case in file.read(command.READY_MADE).cases:
        for text in (case.words.get("setup", ""), case.words.get("load", ""), *case.command):
            for word in text.split():
                assert not word.startswith("{here}/") or (command.READY_MADE.parent / word[7:]).is_file()


class Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True


class Answers(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def address_string(self) -> str:
        return ""

    def log_message(self, *_) -> None:
        pass

    def do_GET(self) -> None:
        self.send_response(200 if self.path.startswith("/there?") else 404)
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"hello")


@pytest.mark.parametrize("page, status", [("/there", 200), ("/gone", 404)])
def test_the_client_says_what_it_got(tmp_path, page, status):
    with Server(str(tmp_path / "socket"), Answers) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        done = subprocess.run([sys.executable, INPUTS / "requests.py", tmp_path / "socket", "44", "4", page],
                              check=True, capture_output=True, text=True, timeout=20)
        server.shutdown()
    assert done.stdout.splitlines() == [f"44 answers with status {status}", "220 bytes"]
