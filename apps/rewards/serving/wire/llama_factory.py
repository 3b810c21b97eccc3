"""LLaMA-Factory's reward server: {"model", "messages": [text]} -> {"scores": [float]}."""

from collections.abc import Mapping
from typing import Any

from apps.rewards.serving.requests import ScoreRequest, read_document
from apps.rewards.serving.response import ScoreResponse
from apps.rewards.serving.wire.protocol import Wire, text_item, texts, wire_request


def parse(body: bytes, headers: Mapping[str, str]) -> ScoreRequest:
    """`messages` are whole conversations as texts; `model` is not looked at: the address names the endpoint."""
    document = read_document(body)
    found = texts(document.get("messages"), "/messages")
    items = [text_item(text, f"/messages/{index}") for index, text in enumerate(found)]
    return wire_request(document, headers, items, pointer="/messages")


def reply(response: ScoreResponse) -> dict[str, Any]:
    return {"scores": response.rewards}


WIRES = (Wire("/compat/llamafactory/{endpoint}", parse, reply),)
