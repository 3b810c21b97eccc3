"""Pooling servers as far as they are asked: recorded contracts, with the arithmetic of transformers' classifier.

vLLM 0.33 (`vllm.entrypoints.pooling.*.protocol`; answers also seen of 0.32 on a CPU): `GET /v1/models`, `POST
/pooling` for the task token_classify, `POST /classify` for the task classify. SGLang 0.5.23
(`sglang.srt.entrypoints.http_server`) with `--is-embedding`: `GET /v1/models`, `POST /classify`.
"""

import base64
import json
import struct
import time
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForSequenceClassification

from tests.core.servers import Handler

LONGEST = 256
_POOLING = {"model", "input", "task", "use_activation", "encoding_format"}
_CLASSIFY = {"model", "input", "use_activation"}


class Vllm(Handler):
    """task: that it was started for. fails_with: the status it answers to everything, if any. slow: seconds of an
    answer. asked: bodies of `/pooling` and `/classify`."""

    model: Any
    key = ""
    task = "token_classify"
    longest = LONGEST
    fails_with = 0
    slow = 0.0
    encodes = ""  # `flat` and `base64`: as older versions answer, and as encoding_format has it
    asked: list[dict[str, Any]]

    def do_GET(self) -> None:
        card = {"id": "m", "object": "model", "owned_by": "vllm", "root": "/m", "max_model_len": self.longest}
        self._answer({"object": "list", "data": [card]})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        time.sleep(type(self).slow)
        served = {"token_classify": "/pooling", "classify": "/classify"}[self.task]
        if self.path != served:
            message = f"Try switching the model's pooling_task via --pooler-config.task {body.get('task')}."
            self._refuse(400 if self.path == "/pooling" else 404, message)
            return
        type(self).asked.append(body)
        assert (body["model"], body["use_activation"]) == ("m", False)
        usage = {"prompt_tokens": sum(map(len, body["input"]))}
        answer = {"id": "pool-1", "object": "list", "created": 1, "model": "m", "usage": usage}
        self._answer(
            answer | {"data": self._pooled(body) if served == "/pooling" else self._classified(body)}
        )

    def _pooled(self, body: dict[str, Any]) -> list[dict[str, Any]]:
        assert set(body) == _POOLING
        assert body["task"] == "token_classify"
        return [
            {"index": index, "object": "pooling", "data": self._encoded(self._logits(ids))}
            for index, ids in enumerate(body["input"])
        ]

    def _encoded(self, rows: list[list[float]]) -> Any:
        flat = [value for row in rows for value in row]
        if self.encodes == "base64":
            return base64.b64encode(struct.pack(f"<{len(flat)}f", *flat)).decode()
        return flat if self.encodes == "flat" else rows

    def _classified(self, body: dict[str, Any]) -> list[dict[str, Any]]:
        assert set(body) == _CLASSIFY
        rows = [self._logits(ids)[-1] for ids in body["input"]]
        return [
            {"index": index, "label": "LABEL_0", "probs": row, "num_classes": len(row)}
            for index, row in enumerate(rows)
        ]

    def _logits(self, ids: list[int]) -> list[list[float]]:
        with torch.no_grad():
            hidden = self.model.base_model(input_ids=torch.tensor([ids])).last_hidden_state
            logits: list[list[float]] = self.model.score(hidden)[0].tolist()
        return logits

    def _answer(self, document: Any) -> None:
        cls, wanted = type(self), f"Bearer {self.key}"
        status = cls.fails_with or (401 if self.key and self.headers["Authorization"] != wanted else 200)
        self._send(status, document if status == 200 else {"error": {"message": "no", "code": status}})

    def _refuse(self, status: int, message: str) -> None:
        error = {"message": message, "type": "BadRequestError", "param": "task", "code": status}
        self._send(status, {"error": error})

    def _send(self, status: int, document: Any) -> None:
        said = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)


class Sglang(Vllm):
    def do_GET(self) -> None:
        card = {
            "id": "m",
            "object": "model",
            "owned_by": "sglang",
            "root": "m",
            "max_model_len": self.longest,
        }
        self._answer({"object": "list", "data": [card]})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        time.sleep(type(self).slow)
        assert (self.path, set(body)) == ("/classify", {"input_ids"})
        type(self).asked.append(body | {"input": body["input_ids"]})
        self._answer(
            [
                {"embedding": self._logits(ids)[-1], "meta_info": {"id": "0", "prompt_tokens": len(ids)}}
                for ids in body["input_ids"]
            ]
        )


def vllm_of(folder: Path, kind: type[Vllm] = Vllm, **attributes: Any) -> type[Vllm]:
    """A handler that computes the artifact in `folder`."""
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    return type("VllmOf", (kind,), {"model": model, "asked": [], **attributes})
