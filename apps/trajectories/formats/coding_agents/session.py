"""What the sessions of coding agents have in common: a task known by its prompt, and tokens counted call by call."""

import hashlib
from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from apps.trajectories.formats.stated import call_metrics
from workers.schema import Step, Task


def prompt_task(steps: Iterable[Step]) -> Task:
    """The task of the first prompt of a person: its id is made of the prompt alone, since what a client puts in front
    of it (folders, rules, dates) differs between samples of one task."""
    for step in steps:
        if step.source == "agent":
            break
        if step.source == "user" and (prompt := step.text.strip()):
            digest = hashlib.sha256(prompt.encode()).hexdigest()
            return Task(id=f"prompt-{digest[:20]}", instruction=step.text)
    return Task(id="")


def with_usage(step: Step) -> Step:
    """The step of an answer with the tokens that its message states as metrics."""
    message = step.extra.get("message")
    usage = message.get("usage") if isinstance(message, dict) else None
    if step.source != "agent" or not isinstance(usage, dict):
        return step
    return replace(step, metrics=step.metrics | call_metrics(usage))


def summed_metrics(steps: Iterable[Step]) -> dict[str, float | int]:
    """Of all steps together, each of their numbers."""
    total: dict[str, float | int] = {}
    for step in steps:
        for name, number in step.metrics.items():
            if isinstance(number, int | float) and not isinstance(number, bool):
                total[name] = total.get(name, 0) + number
    return total


def first_text(holders: Iterable[Any], *keys: str) -> str:
    """The first text under one of the keys in one of the objects; empty where there is none."""
    for holder in holders:
        for key in keys if isinstance(holder, dict) else ():
            if isinstance(value := holder.get(key), str) and value:
                return value
    return ""
