"""A server that speaks OpenAI's chat completions and answers by a script."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tests.core.servers import Handler, serving

Body = dict[str, Any]
Raw = Callable[[Handler], None]
# What the model says; or a status and a body; or what is done with the connection; or it is closed.
Reply = str | tuple[int, Any] | Raw | None


class Script:
    """answer: of the body of a request. asked: every body so far. keys: the secrets it was asked with."""

    def __init__(self, answer: Callable[[Body], Reply]) -> None:
        self.answer, self.asked, self.keys = answer, list[Body](), set[str]()
        self.lock = threading.Lock()


def completion(said: str, *, ended: str = "stop", refusal: str | None = None) -> Body:
    message = {"role": "assistant", "content": None if refusal else said, "refusal": refusal}
    return {
        "id": "c-1",
        "object": "chat.completion",
        "created": 1,
        "model": "scripted",
        "choices": [{"index": 0, "message": message, "finish_reason": ended}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
    }


def head(to: Handler, status: int, headers: dict[str, str]) -> None:
    to.send_response(status)
    for name, value in ({"Content-Type": "application/json"} | headers).items():
        to.send_header(name, value)
    to.end_headers()


@contextmanager
def scripted(script: Script) -> Iterator[str]:
    """Its base URL."""

    class Model(Handler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with script.lock:
                script.asked.append(body)
                script.keys.add(self.headers.get("Authorization", "").removeprefix("Bearer "))
                reply = script.answer(body) if self.path == "/v1/chat/completions" else (404, {})
            if reply is None:
                self.close_connection = True
                return
            if callable(reply):
                self.close_connection = True
                reply(self)
                return
            status, said = (200, completion(reply)) if isinstance(reply, str) else reply
            data = said.encode() if isinstance(said, str) else json.dumps(said).encode()
            head(self, status, {"Content-Length": str(len(data)), "Retry-After-Ms": "1"})
            self.wfile.write(data)

    with serving(Model) as address:
        yield f"{address}/v1"
