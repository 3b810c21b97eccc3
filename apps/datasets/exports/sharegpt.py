"""Messages by turns, in LLaMA-Factory's ShareGPT form: `human` or `observation`, then `gpt` or `function_call`."""

import json
from typing import Any

from apps.datasets.exports.columns import LeftOut
from apps.datasets.exports.conversations import Message, content_text

TURNS = (("human", "observation"), ("gpt", "function_call"))  # by whose turn it is
TEXT_LEFT_OUT = "texts next to tool calls, for which the form has no place"
Turn = dict[str, Any]


def sharegpt_turns(messages: list[Message], left_out: LeftOut) -> list[Turn] | None:
    """None where the messages have no such form: an agent that goes on speaking after a call without a result.

    Messages of one side that follow one another are one turn: their texts joined by an empty line, their calls listed.
    """
    turns: list[Turn] = []
    for message in messages:
        turn = _turn(message, left_out)
        if not turns or _side(turns[-1]) != _side(turn):
            turns.append(turn)
            continue
        joined = _joined(turns[-1], turn, left_out)
        if joined is None:
            return None
        turns[-1] = joined
    return [{"from": turn["from"], "value": _value(turn)} for turn in turns]


def ends_with_agent(turns: list[Turn]) -> bool:
    """Whether they begin with a person or a result, and end with the agent."""
    return bool(turns) and turns[0]["from"] in TURNS[0] and turns[-1]["from"] in TURNS[1]


def _side(turn: Turn) -> int:
    return int(turn["from"] in TURNS[1])


def _turn(message: Message, left_out: LeftOut) -> Turn:
    role = message["role"]
    name = message.get("name")
    text = content_text(message["content"])
    if name and role != "tool":
        text = f"{name}: {text}"
    if role != "assistant":
        return {"from": "observation" if role == "tool" else "human", "text": text}
    thought = message.get("reasoning_content")
    thoughts = f"<think>\n{thought}\n</think>\n\n" if thought else ""
    if "tool_calls" not in message:
        return {"from": "gpt", "text": thoughts + text}
    left_out[TEXT_LEFT_OUT] += bool(content_text(message["content"]).strip())
    calls = [
        {"name": call["function"]["name"], "arguments": call["function"]["arguments"]}
        for call in message["tool_calls"]
    ]
    return {"from": "function_call", "thoughts": thoughts, "calls": calls}


def _joined(turn: Turn, following: Turn, left_out: LeftOut) -> Turn | None:
    """Two turns of one side as one."""
    kinds = turn["from"], following["from"]
    if kinds == ("function_call", "function_call"):
        return turn | {
            "thoughts": turn["thoughts"] + following["thoughts"],
            "calls": turn["calls"] + following["calls"],
        }
    if kinds == ("gpt", "function_call"):
        left_out[TEXT_LEFT_OUT] += bool(turn["text"].strip())
        return following
    if kinds == ("function_call", "gpt"):
        return None
    return turn | {"text": "\n\n".join(text for text in (turn["text"], following["text"]) if text)}


def _value(turn: Turn) -> str:
    if "calls" not in turn:
        return str(turn["text"])
    return turn["thoughts"] + json.dumps(turn["calls"], ensure_ascii=False)
