"""Asks a web server for pages over a Unix socket, many at a time: python requests.py SOCKET COUNT CLIENTS PATH

Says how many it got of which status, and how many bytes of them.
"""

import collections
import http.client
import socket
import sys
from concurrent.futures import ThreadPoolExecutor


class Connection(http.client.HTTPConnection):
    def __init__(self, path: str):
        super().__init__("localhost")
        self.at = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.at)


def ask(at: str, page: str, count: int) -> list[tuple[int, int]]:
    """Status and size of each answer, over one connection; every tenth question closes it, as clients do."""
    connection, got = Connection(at), []
    for number in range(count):
        last = number % 10 == 9
        connection.request("GET", f"{page}?n={number}",
                           headers={"Accept-Encoding": "gzip", **({"Connection": "close"} if last else {})})
        answer = connection.getresponse()
        got.append((answer.status, len(answer.read())))
        if last:
            connection.close()
    connection.close()
    return got


def main(at: str, count: str, clients: str, page: str) -> None:
    with ThreadPoolExecutor(int(clients)) as pool:
        shares = [pool.submit(ask, at, page, int(count) // int(clients)) for _ in range(int(clients))]
        got = [answer for share in shares for answer in share.result()]
    for status, number in sorted(collections.Counter(status for status, _ in got).items()):
        print(number, "answers with status", status)
    print(sum(size for _, size in got), "bytes")


if __name__ == "__main__":
    main(*sys.argv[1:])
