"""Half-open connections against a running process: is it still answering?

    python -m benchmarks.half_open --port 8000 [--count 10000] [--json]

Each connection sends the beginning of a request and then nothing. Meanwhile an honest client asks /healthz.
"""

import argparse
import json
import resource
import socket
import time
from typing import Any

_BEGINNING = b"POST /api/v1/rewards/x/score HTTP/1.1\r\nHost: localhost\r\nX-Header: b\r\n"
_EVERY = 250  # connections between two questions of the honest client


def half_open(port: int, count: int, *, path: str = "/healthz", host: str = "127.0.0.1") -> dict[str, Any]:
    """Seconds in which an honest client was answered while `count` connections were opened, and after."""
    held: list[socket.socket] = []
    seconds, failures = [_answer_seconds(host, port, path)], 0
    began = time.perf_counter()
    try:
        for number in range(count):
            try:
                held.append(socket.create_connection((host, port), timeout=5))
                held[-1].sendall(_BEGINNING)
            except OSError:
                failures += 1
            if number % _EVERY == _EVERY - 1:
                seconds.append(_answer_seconds(host, port, path))
        opened = time.perf_counter() - began
        seconds += [_answer_seconds(host, port, path) for _ in range(10)]
        return {
            "connections": count,
            "failures": failures,
            "opened_in_seconds": round(opened, 2),
            "asked": len(seconds),
            "slowest_seconds": round(max(seconds), 3),
            "median_seconds": round(sorted(seconds)[len(seconds) // 2], 4),
            "still_open": sum(_is_open(each) for each in held),
        }
    finally:
        for each in held:
            each.close()


def _answer_seconds(host: str, port: int, path: str) -> float:
    began = time.perf_counter()
    with socket.create_connection((host, port), timeout=15) as asking:
        asking.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        answer = asking.recv(65536)
    assert answer.startswith(b"HTTP/1.1 200"), answer[:200]
    return time.perf_counter() - began


def _is_open(connection: socket.socket) -> bool:
    connection.setblocking(False)
    try:
        return bool(connection.recv(1))
    except BlockingIOError:
        return True
    except OSError:
        return False


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    found = half_open(options.port, options.count)
    print(
        json.dumps(found) if options.json else "\n".join(f"{name}: {value}" for name, value in found.items())
    )


if __name__ == "__main__":
    main()
