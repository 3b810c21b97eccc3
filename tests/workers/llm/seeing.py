"""A language model that sees: it reads the pictures of a request, and judges by their colours."""

import base64
import io
import json
from itertools import pairwise
from typing import Any

import numpy as np
from PIL import Image

from benchmarks.rule_judge import judged
from tests.workers.llm.scripted import Body, Reply, completion

Json = dict[str, Any]
PICTURE_TOKENS = 300


def pictures_of(body: Body) -> list[tuple[Json, Image.Image]]:
    """Each with the line before it."""
    content = body["messages"][-1]["content"]
    if isinstance(content, str):
        return []
    found = []
    for before, part in pairwise(content):
        if part["type"] == "image_url":
            data = base64.b64decode(part["image_url"]["url"].partition(",")[2])
            found.append((json.loads(before["text"]) if before["text"][:1] == "{" else {}, opened(data)))
    return found


def opened(data: bytes) -> Image.Image:
    picture = Image.open(io.BytesIO(data))
    picture.load()
    return picture


def is_red(picture: Image.Image) -> bool:
    red, _, blue = np.asarray(picture.convert("RGB"), dtype=float).mean((0, 1))
    return bool(red > blue)


def text_of(body: Body) -> str:
    content = body["messages"][-1]["content"]
    return content if isinstance(content, str) else str(content[0]["text"])


def scored_by_colour(body: Body) -> Reply:
    """The rules of `benchmarks.rule_judge` on the text; a red picture is another failure. Tokens by pictures."""
    seen = pictures_of(body)
    plain = [*body["messages"][:-1], {"role": "user", "content": text_of(body)}]
    answer = json.loads(judged({"messages": plain}))
    reds = [label for label, picture in seen if is_red(picture)]
    for found in answer.values():
        if isinstance(found, dict) and isinstance(found.get("score"), int | float):
            found["score"] = max(found["score"] - len(reds), 1)
            found["reason"] = f"{len(reds)} of {len(seen)} pictures are red."
    counted = 10 + PICTURE_TOKENS * len(seen)
    usage = {"prompt_tokens": counted, "completion_tokens": 5, "total_tokens": counted + 5}
    return 200, completion(json.dumps(answer)) | {"usage": usage}
