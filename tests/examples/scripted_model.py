"""A server of OpenAI's chat completions, streamed or not, that answers from a function."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tests.core.servers import Handler, serving

Answer = Callable[[dict[str, Any]], dict[str, Any]]


@contextmanager
def scripted_model(answer: Answer) -> Iterator[str]:
    """Its address, without /v1. answer: from the body of a request to the fields of the assistant's message."""

    class Model(Handler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            message = {"role": "assistant", "content": None} | answer(body)
            reason = "tool_calls" if "tool_calls" in message else "stop"
            if body.get("stream"):
                text = _event({"delta": message}, None) + _event({"delta": {}}, reason) + "data: [DONE]\n\n"
                self._send("text/event-stream", text)
            else:
                choice = {"index": 0, "message": message, "finish_reason": reason}
                usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
                reply = {"object": "chat.completion", "choices": [choice], "usage": usage} | _ABOUT
                self._send("application/json", json.dumps(reply))

        def _send(self, kind: str, text: str) -> None:
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(text.encode())))
            self.end_headers()
            self.wfile.write(text.encode())

    with serving(Model) as url:
        yield url


_ABOUT = {"id": "1", "created": 0, "model": "scripted"}


def _event(fields: dict[str, Any], reason: str | None) -> str:
    choice = {"index": 0, "finish_reason": reason} | fields
    return f"data: {json.dumps({'object': 'chat.completion.chunk', 'choices': [choice]} | _ABOUT)}\n\n"
