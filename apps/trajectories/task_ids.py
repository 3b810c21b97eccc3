"""Ids of tasks whose source names none: by the content of the prompt, so that all samples of a prompt share one."""

from collections.abc import Iterable
from hashlib import sha256

from apps.trajectories.fields import encode_json
from workers import schema


def content_task_id(prompt: Iterable[schema.Step]) -> str:
    """prompt: the steps before the first answer of the agent that is sampled."""
    content = encode_json([[step.source, step.message] for step in prompt])
    return f"content-{sha256(content.encode()).hexdigest()[:20]}"
