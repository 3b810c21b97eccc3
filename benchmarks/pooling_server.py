"""A pooling server as a process, for tests and benchmarks of replicas: vLLM's `/pooling` with simple arithmetic.

    python -m benchmarks.pooling_server --port 8100 [--factor 1] [--tokens-per-second 50000] [--at-once 4]

The logit after a token is `factor` times the sum of what the tokens up to it are worth. A simulated device computes
`at-once` requests next to each other, each at its part of `tokens-per-second`.
"""

import argparse
import json
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from workers.schema.remote_models import ModelProbe

ROOT = Path(__file__).parents[1]
MAX_TOKENS = 4096
_PROBE_IDS = tuple(range(1, 13))


def logits(ids: Sequence[int], factor: float) -> list[list[float]]:
    """[tokens][1]."""
    total, found = 0.0, []
    for token in ids:
        total += (token * 37 % 101 - 50) / 50
        found.append([factor * total])
    return found


def probe(factor: float = 1.0) -> ModelProbe:
    """Of the model with this factor."""
    return ModelProbe(_PROBE_IDS, tuple(map(tuple, logits(_PROBE_IDS, factor))), MAX_TOKENS)


@dataclass(eq=False)
class PoolingProcess:
    """A server in a process of its own, so that it can be killed and started again, as another model too."""

    port: int
    factor: float = 1.0
    tokens_per_second: float = 0.0
    process: "subprocess.Popen[bytes] | None" = None

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self, *, factor: float | None = None) -> None:
        """And wait until it answers."""
        self.launch(factor=factor)
        self.wait()

    def launch(self, *, factor: float | None = None) -> None:
        self.factor = self.factor if factor is None else factor
        options = [f"--port={self.port}", f"--factor={self.factor}"]
        options.append(f"--tokens-per-second={self.tokens_per_second}")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.pooling_server", *options], cwd=ROOT
        )

    def wait(self) -> None:
        until = time.monotonic() + 20
        while not self._answers():
            if time.monotonic() > until:
                raise RuntimeError(f"nothing answers at {self.address}")
            time.sleep(0.02)

    def _answers(self) -> bool:
        with suppress(OSError):
            socket.create_connection(("127.0.0.1", self.port), timeout=5).close()
            return True
        return False

    def asked(self) -> int:
        """Tokens that it was asked for since it started."""
        with urllib.request.urlopen(f"{self.address}/asked", timeout=5) as reply:
            return int(json.loads(reply.read())["tokens"])

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


@contextmanager
def pooling_processes(servers: Sequence[PoolingProcess]) -> Iterator[Sequence[PoolingProcess]]:
    try:
        for server in servers:
            server.launch()
        for server in servers:
            server.wait()
        yield servers
    finally:
        for server in servers:
            server.kill()


def handler_of(factor: float, tokens_per_second: float, at_once: int) -> type[BaseHTTPRequestHandler]:
    device, counted = threading.Semaphore(at_once), {"tokens": 0}

    class Pooling(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            card = {"id": "m", "object": "model", "owned_by": "vllm", "max_model_len": MAX_TOKENS}
            self._answer(counted if self.path == "/asked" else {"object": "list", "data": [card]})

        def do_POST(self) -> None:
            inputs = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["input"]
            tokens = sum(map(len, inputs))
            counted["tokens"] += tokens
            if tokens_per_second:
                with device:
                    time.sleep(tokens * at_once / tokens_per_second)
            rows = [
                {"index": index, "object": "pooling", "data": logits(ids, factor)}
                for index, ids in enumerate(inputs)
            ]
            usage = {"prompt_tokens": tokens, "total_tokens": tokens}
            self._answer(
                {"id": "p", "object": "list", "created": 1, "model": "m", "data": rows, "usage": usage}
            )

        def _answer(self, document: object) -> None:
            body = json.dumps(document).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Pooling


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pooling_server", description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--factor", type=float, default=1.0)
    parser.add_argument("--tokens-per-second", type=float, default=0.0)
    parser.add_argument("--at-once", type=int, default=4)
    options = parser.parse_args()
    handler = handler_of(options.factor, options.tokens_per_second, options.at_once)
    server = ThreadingHTTPServer(("127.0.0.1", options.port), handler)
    server.daemon_threads = True
    server.serve_forever()


if __name__ == "__main__":
    main()
