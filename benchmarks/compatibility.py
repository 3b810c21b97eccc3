"""Does every trainer's protocol give the reward of the messages, whatever chat template rendered them?

Each conversation is rendered with each chat template that TRL ships, put into a request of each protocol, read by the
service's own code and scored by a small encoder. `--write` puts the tables into docs/compatibility.md; a reward that
differs and is not flagged ends with 1.
"""

import argparse
import json
import os
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import django

from benchmarks.chat_templates import (
    CONVERSATIONS,
    TEMPLATES,
    NotShown,
    prompt_and_response,
    render,
    scored_messages,
)
from benchmarks.docs_writer import write_between
from workers.errors import RewardError
from workers.schema import ScoreInput

Json = dict[str, Any]
DOCS = Path(__file__).parents[1] / "docs" / "compatibility.md"
KINDS = ("plain", "system", "tools", "reasoning", "multi-turn", "pictures")
PAIRS = ("OpenRLHF", "slime", "TEI pair", "SGLang pair", "vLLM score", "vLLM rerank", "TRL text", "verl text")
WHOLES = (
    "vLLM classify",
    "vLLM pooling",
    "verl reward loop",
    "OpenAI embeddings",
    "SGLang",
    "TEI",
    "LLaMA-Factory",
)
MESSAGES = ("TRL", "verl", "slime", "vLLM", "NeMo-Gym")
QUICK = TEMPLATES[::6]  # of which `--quick` asks all protocols
LOSSY = {"template_lossy", "reasoning_unclosed"}
Score = Callable[[ScoreInput], float]


def pair_body(protocol: str, prompt: str, response: str) -> Json:
    pair = [prompt, response]
    bodies: dict[str, Json] = {
        "OpenRLHF": {"query": [prompt + response], "prompts": [prompt], "labels": [None]},
        "slime": {"prompt": prompt, "response": response, "label": None},
        "TEI pair": {"model": "e", "inputs": pair},
        "SGLang pair": {"model": "e", "text": [pair]},
        "vLLM score": {"model": "e", "text_1": prompt, "text_2": response},
        "vLLM rerank": {"model": "e", "query": prompt, "documents": [response]},
        "TRL text": {"inputs": [{"prompt": prompt, "response": response}]},
        "verl text": {"inputs": [{"prompt": prompt, "response": response}]},
    }
    return bodies[protocol]


def whole_body(protocol: str, text: str) -> Json:
    bodies: dict[str, Json] = {
        "vLLM classify": {"model": "e", "input": text},
        "vLLM pooling": {"model": "e", "input": [text]},
        "verl reward loop": {"model": "e", "input": text, "activation": False},
        "OpenAI embeddings": {"model": "e", "input": text},
        "SGLang": {"model": "e", "text": [text]},
        "TEI": {"model": "e", "inputs": text},
        "LLaMA-Factory": {"model": "m", "messages": [text]},
    }
    return bodies[protocol]


def messages_body(protocol: str, messages: list[Json]) -> Json:
    """As the trainer sends a roll-out: TRL's tool results have no ids, verl's response is text."""
    *before, last = messages
    if protocol == "TRL":
        start = next(place for place, message in enumerate(messages) if message["role"] == "assistant")
        return {
            "inputs": [{"prompt": messages[:start], "response": list(map(_without_ids, messages[start:]))}]
        }
    if protocol in ("verl", "slime"):
        text = last["content"]
        if last.get("reasoning_content"):
            text = f"<think>\n{last['reasoning_content']}\n</think>\n\n{text}"
        item = {"prompt": before, "response": text}
        return item if protocol == "slime" else {"inputs": [item]}
    if protocol == "vLLM":
        return {"model": "e", "messages": messages}
    start = next(place for place, message in enumerate(messages) if message["role"] == "assistant")
    items = [item for message in messages for item in _response_items(message)]
    split = len([item for message in messages[:start] for item in _response_items(message)])
    return {"responses_create_params": {"input": items[:split]}, "response": {"output": items[split:]}}


def _without_ids(message: Json) -> Json:
    """As TRL's `GRPOTrainer(tools=...)` writes calls and their results."""
    calls = [{k: v for k, v in call.items() if k != "id"} for call in message.get("tool_calls", ())]
    kept = {key: value for key, value in message.items() if key not in ("tool_call_id", "tool_calls")}
    return kept | ({"tool_calls": calls} if calls else {})


def _response_items(message: Json) -> list[Json]:
    """Of OpenAI's Responses API."""
    role, content = message["role"], message["content"]
    if role == "tool":
        return [{"type": "function_call_output", "call_id": message["tool_call_id"], "output": content}]
    kind = "output_text" if role == "assistant" else "input_text"
    parts = [{"type": kind, "text": content}] if isinstance(content, str) else content
    parts = [part if part["type"] != "image" else {"type": "input_image", "image_url": "x"} for part in parts]
    parts = [part | {"type": kind} if part["type"] == "text" else part for part in parts]
    items: list[Json] = []
    if message.get("reasoning_content"):
        summary = [{"type": "summary_text", "text": message["reasoning_content"]}]
        items.append({"type": "reasoning", "summary": summary})
    if any(part.get("text") or part["type"] == "input_image" for part in parts):
        items.append({"type": "message", "role": role, "content": parts})
    for call in message.get("tool_calls", ()):
        function = call["function"]
        arguments = json.dumps(function["arguments"])
        items.append(
            {"type": "function_call", "name": function["name"], "arguments": arguments, "call_id": call["id"]}
        )
    return items


def parsers() -> dict[str, Callable[..., Any]]:
    """By protocol, what reads its body in the service."""
    from apps.rewards.serving.requests import parse_score
    from apps.rewards.serving.wire import llama_factory, nemo_gym, openrlhf, sglang, slime, tei, vllm

    return {
        "OpenRLHF": openrlhf.parse, "slime": slime.parse, "TEI pair": tei.parse_predict, "SGLang pair": sglang.parse,
        "vLLM score": vllm.parse_pairs, "vLLM rerank": vllm.parse_rerank, "TRL text": parse_score,
        "verl text": parse_score, "vLLM classify": vllm.parse_inputs, "vLLM pooling": vllm.parse_inputs,
        "verl reward loop": vllm.parse_inputs, "OpenAI embeddings": vllm.parse_inputs, "SGLang": sglang.parse,
        "TEI": tei.parse_predict, "LLaMA-Factory": llama_factory.parse, "TRL": parse_score, "verl": parse_score,
        "vLLM": vllm.parse_inputs, "NeMo-Gym": nemo_gym.parse,
    }  # fmt: skip


def scorer() -> Score:
    """Rewards of a small encoder with random weights, which any difference of what it reads changes."""
    import torch

    from workers.models import Lineage, LoadedModel, build
    from workers.schema.recipe import Recipe

    torch.manual_seed(7)
    model = build(Recipe(width=16, layers=1, attention_heads=2, max_tokens=4096))
    manifest = {"reward": {"median": 0.0, "std": 1.0}, "aggregation": "value", "lineage": Lineage()}
    loaded = LoadedModel(model, manifest)
    known: dict[bytes, float] = {}

    def score(item: ScoreInput) -> float:
        content: Any = item.content
        rendered = loaded.render(content)
        if rendered.key not in known:
            known[rendered.key] = loaded.score([rendered])[0].raw
        return known[rendered.key]

    return score


def outcome(parse: Callable[..., Any], body: Json, score: Score, expected: float, less: float) -> str:
    """expected: the reward of the messages. less: of what a template leaves of them where it drops a part."""
    from workers.schema.reading_flags import reading_flags

    try:
        (item,) = parse(json.dumps(body).encode(), {}).items
    except RewardError:
        return "refused"
    flags = reading_flags(item, reads_reference=False)
    reward = score(item)
    if abs(reward - expected) <= 1e-5:
        return "same, flagged" if flags else "same"
    if abs(reward - less) <= 1e-5 and not LOSSY.intersection(flags):
        return "not in the text"
    return "flagged" if flags else "DIFFERENT"


def table(
    protocols: Sequence[str],
    shown: Callable[[str, list[Json]], tuple[str, ...]],
    make: Callable[..., Json],
    score: Score,
    *,
    is_quick: bool = False,
) -> Json:
    """By template, protocol and kind. shown: the texts of a template. make: of a protocol and these, the body.

    is_quick: of most templates the first protocol only; all protocols read texts by the same code.
    """
    from workers.schema.rendered_items import parse_scored_item

    by_name, read = defaultdict[str, Json](dict), parsers()
    for kind in KINDS:
        messages = scored_messages(CONVERSATIONS[kind])
        expected = score(parse_scored_item({"messages": messages}))
        less = score(parse_scored_item({"messages": list(map(_plainer, messages))}))
        for name in TEMPLATES:
            try:
                texts = shown(name, CONVERSATIONS[kind])
            except NotShown:
                texts = None
            for protocol in protocols[:1] if is_quick and name not in QUICK else protocols:
                found = "no text"
                if texts is not None:
                    found = outcome(read[protocol], make(protocol, *texts), score, expected, less)
                by_name[name].setdefault(protocol, {})[kind] = found
    return by_name


def _plainer(message: Json) -> Json:
    """Without reasoning and pictures."""
    kept = {key: value for key, value in message.items() if key != "reasoning_content"}
    if isinstance(kept["content"], list):
        kept["content"] = [part for part in kept["content"] if part["type"] == "text"]
    return kept


def conversations(score: Score) -> Json:
    """By protocol of messages, and kind."""
    from workers.schema.rendered_items import parse_scored_item

    read, found = parsers(), defaultdict[str, Json](dict)
    for kind in KINDS:
        messages = scored_messages(CONVERSATIONS[kind])
        expected = score(parse_scored_item({"messages": messages}))
        for protocol in MESSAGES:
            body = messages_body(protocol, messages)
            found[protocol][kind] = outcome(read[protocol], body, score, expected, expected)
    return found


def lines(found: Json) -> list[str]:
    written = ["## Protocols of messages", "", *_head("Protocol")]
    written += [_row(protocol, cells) for protocol, cells in found["messages"].items()]
    for title, part in (
        ("## Prompt and response as text", "pairs"),
        ("## A conversation as one text", "wholes"),
    ):
        for protocols, rows in _alike(found[part]):
            written += ["", title, "", f"{', '.join(protocols)}:", "", *_head("Chat template")]
            written += [_row(f"`{', '.join(names)}`", cells) for names, cells in rows]
    return [*written, ""]


def _alike(by_name: Json) -> list[tuple[list[str], list[tuple[list[str], Json]]]]:
    """Protocols whose tables are equal, each with its rows; templates whose rows are equal share one."""
    tables: dict[str, list[str]] = defaultdict(list)
    for protocol in max(by_name.values(), key=len):
        known = {name: cells[protocol] for name, cells in by_name.items() if protocol in cells}
        tables[json.dumps(known)].append(protocol)
    found = []
    for key, protocols in tables.items():
        rows: dict[str, list[str]] = defaultdict(list)
        for name, cells in json.loads(key).items():
            rows[json.dumps(cells)].append(name)
        found.append((protocols, [(names, json.loads(cells)) for cells, names in rows.items()]))
    return found


def _head(first: str) -> list[str]:
    return [f"| {first} | {' | '.join(KINDS)} |", "|---" * (len(KINDS) + 1) + "|"]


def _row(first: str, cells: Json) -> str:
    return f"| {first} | {' | '.join(cells[kind] for kind in KINDS)} |"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compatibility", description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true", help="of most templates one protocol of each table")
    parser.add_argument("--write", action="store_true", help="into docs/compatibility.md")
    options = parser.parse_args()
    if options.quick and options.write:
        parser.error("--write needs all protocols; leave out --quick")
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "apps.config.settings")
    django.setup()
    score = scorer()
    found = {
        "messages": conversations(score),
        "pairs": table(PAIRS, prompt_and_response, pair_body, score, is_quick=options.quick),
        "wholes": table(
            WHOLES,
            lambda name, messages: (render(name, messages),),
            whole_body,
            score,
            is_quick=options.quick,
        ),
    }
    print(json.dumps(found) if options.json else "\n".join(lines(found)))
    if options.write:
        write_between(DOCS, "compatibility", lines(found))
    wrong = json.dumps(found).count("DIFFERENT")
    if wrong:
        sys.stderr.write(f"{wrong} rewards differ from that of the messages and are not flagged.\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
