"""vLLM's pooling server as far as it is asked: its recorded contract, with the arithmetic of transformers' classifier.

Recorded from vLLM 0.32 on a CPU: `GET /v1/models`, `POST /pooling` for the task token_classify.
"""

import json
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForSequenceClassification

from tests.core.servers import Handler

LONGEST = 256


class Vllm(Handler):
    """fails_with: the status it answers to everything, if any. asked: bodies of `/pooling`."""

    model: Any
    key = ""
    fails_with = 0
    asked: list[dict[str, Any]]

    def do_GET(self) -> None:
        self._answer({"object": "list", "data": [{"id": "m", "object": "model", "max_model_len": LONGEST}]})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        type(self).asked.append(body)
        assert (self.path, body["model"]) == ("/pooling", "m")
        assert (body["task"], body["use_activation"]) == ("token_classify", False)
        data = [
            {"index": index, "object": "pooling", "data": self._logits(ids)}
            for index, ids in enumerate(body["input"])
        ]
        usage = {"prompt_tokens": sum(map(len, body["input"]))}
        self._answer(
            {"id": "pool-1", "object": "list", "created": 1, "model": "m", "data": data, "usage": usage}
        )

    def _logits(self, ids: list[int]) -> list[list[float]]:
        with torch.no_grad():
            hidden = self.model.base_model(input_ids=torch.tensor([ids])).last_hidden_state
            logits: list[list[float]] = self.model.score(hidden)[0].tolist()
        return logits

    def _answer(self, document: dict[str, Any]) -> None:
        cls, wanted = type(self), f"Bearer {self.key}"
        status = cls.fails_with or (401 if self.key and self.headers["Authorization"] != wanted else 200)
        said = json.dumps(
            document if status == 200 else {"error": {"message": "no", "code": status}}
        ).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)


def vllm_of(folder: Path, **attributes: Any) -> type[Vllm]:
    """A handler that computes the artifact in `folder`."""
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    return type("VllmOf", (Vllm,), {"model": model, "asked": [], **attributes})
