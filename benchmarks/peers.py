"""The servers that `benchmarks.serving` is measured against, and the engine without HTTP.

`python -m benchmarks.peers plain|padded ARTIFACT PORT` answers POST /score {"inputs": [ITEM]} with {"results":
[{"reward"}]}, on the HTTP stack our own service has. plain: one request at a time, as the pages of transformers show
it. padded: what gathers within 5 ms, at most 16, padded to the longest. Neither keeps or shares anything. A decoder is
an AutoModelForSequenceClassification of transformers; a step-encoder is ours, since there is no other, with each chunk
encoded for itself. `python -m benchmarks.peers offline ARTIFACT` scores the files it is told by the engine.
"""

import asyncio
import json
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from workers.engine import Batcher, ServedModel, Version
from workers.models import ChunkCache, LoadedModel, SessionCache, load
from workers.models.backbones.encoder import _padded
from workers.models.backbones.step_encoder import StepEncoder, collate
from workers.models.states import join
from workers.schema import ScoreInput, Text, parse_item
from workers.schema.endpoints import parse_spec

MOST, WAIT_SECONDS = 16, 0.005
NAME = "bench/model@1"


class Classifier:
    """A decoder as transformers serves it."""

    def __init__(self, folder: Path) -> None:
        from transformers import AutoModelForSequenceClassification, AutoTokenizer

        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.model = AutoModelForSequenceClassification.from_pretrained(folder, dtype=torch.float32).eval()

    @torch.no_grad()
    def score(self, items: Sequence[dict[str, Any]]) -> list[float]:
        shown = [self.tokenizer.apply_chat_template(item["messages"], tokenize=False) for item in items]
        batch = self.tokenizer(shown, return_tensors="pt", padding=True, add_special_tokens=False)
        found: list[float] = self.model(**batch).logits.mean(-1).tolist()
        return found


class Encoder:
    """A step-encoder whose chunks are padded and encoded as they come."""

    def __init__(self, model: LoadedModel) -> None:
        self.model = model

    @torch.no_grad()
    def score(self, items: Sequence[dict[str, Any]]) -> list[float]:
        backbone = self.model.model.backbone
        assert isinstance(backbone, StepEncoder)
        rendered = [self.model.render(parse_item(item).content) for item in items]
        ids, mask = _padded([backbone.renderer.framed(chunk) for item in rendered for chunk in item.chunks])
        hidden = backbone.encoder(input_ids=ids, attention_mask=mask).last_hidden_state
        weights = mask.unsqueeze(-1).float()
        flat = torch.nn.functional.normalize((hidden * weights).sum(1) / weights.sum(1), dim=-1)
        collated = collate(rendered, backbone.renderer)
        embeddings = torch.zeros(*collated.place.shape, flat.shape[-1])
        for row, part in enumerate(flat.split([len(item.chunks) for item in rendered])):
            embeddings[row, : len(part)] = part
        precise = next(backbone.mixer.parameters()).dtype
        mixed = backbone.mixer(
            embeddings.to(precise), collated.sources, collated.grounding.to(precise), collated.mask
        )
        states = join(
            [
                (row[one.start], row[[1 + read for read in one.reads if read is not None]])
                for one, row in zip(rendered, mixed, strict=True)
            ]
        )
        heads = self.model.model.heads.scalar(states.flat[states.last]).squeeze(-1)
        found: list[float] = heads.mean(-1).tolist()
        return found


def peer_of(folder: Path) -> Classifier | Encoder:
    model = load(folder)
    return Encoder(model) if isinstance(model.model.backbone, StepEncoder) else Classifier(folder)


class Batches:
    """Dynamic batching, as it is written everywhere: wait a moment, take what there is."""

    def __init__(self, peer: Any, most: int) -> None:
        self._peer, self._most = peer, most
        self._waiting: list[tuple[Any, asyncio.Future[float]]] = []
        self._worker = ThreadPoolExecutor(1)
        self._wake = asyncio.Event()

    async def score(self, item: Any) -> float:
        future: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, future))
        self._wake.set()
        return await future

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._wake.wait()
            if self._most > 1 and len(self._waiting) < self._most:
                await asyncio.sleep(WAIT_SECONDS)
            taken, self._waiting = self._waiting[: self._most], self._waiting[self._most :]
            if not self._waiting:
                self._wake.clear()
            rewards = await loop.run_in_executor(self._worker, self._peer.score, [item for item, _ in taken])
            for (_, future), reward in zip(taken, rewards, strict=True):
                future.set_result(reward)


def serve(kind: str, folder: Path, port: int) -> None:
    batches = Batches(peer_of(folder), MOST if kind == "padded" else 1)
    tasks: list[Any] = []

    async def score(request: Request) -> JSONResponse:
        if not tasks:
            tasks.append(asyncio.create_task(batches.run()))
        items = (await request.json())["inputs"]
        rewards = await asyncio.gather(*map(batches.score, items))
        return JSONResponse({"results": [{"reward": reward} for reward in rewards]})

    app = Starlette(routes=[Route("/score", score, methods=["POST"])])
    uvicorn.run(app, port=port, log_level="warning", access_log=False)


def version_of(folder: Path) -> tuple[Version, Batcher]:
    model = load(folder)
    kind = model.model.backbone.kind
    caches = {"step-encoder": ChunkCache(2**28), "decoder": SessionCache(2**30).within()}
    batcher = Batcher()
    spec = parse_spec({"components": [{"name": "m", "model": NAME}]})
    served = ServedModel(NAME, model, caches.get(kind))
    return Version(1, spec, {NAME: served}, batcher, lambda version: None), batcher


def offline(folder: Path) -> None:
    """For every file of items named on standard input: the seconds of rendering and scoring, and what they scored."""
    version, batcher = version_of(folder)
    version.warm_up(Text("Hello."))
    print(json.dumps({}), flush=True)
    for name in sys.stdin:
        items: list[ScoreInput] = [
            parse_item(json.loads(line)) for line in Path(name.strip()).read_text().splitlines()
        ]
        began = time.perf_counter()
        scores = asyncio.run(version.score(version.render(items)))
        seconds = time.perf_counter() - began
        print(json.dumps({"seconds": seconds, "rewards": [score.raw for score in scores]}), flush=True)
    batcher.close()


if __name__ == "__main__":
    kind, folder, *rest = sys.argv[1:]
    if kind == "offline":
        offline(Path(folder))
    else:
        serve(kind, Path(folder), int(rest[0]))
