"""Alpaca's rows, as LLaMA-Factory and AlpacaEval have them too: {"instruction", "input"?, "output", "history"?,
"system"?, "generator"?}, some with `instruct`; Dolly's have `context` and `response`, Self-Instruct's seed tasks
`instances`.

`history` holds the turns before: pairs of what the user asked and the agent answered. `kto_tag` and `label` are
feedback, which `import_feedback --format trl-unpaired` reads.
"""

from collections.abc import Iterator
from typing import Any

from apps.trajectories.formats.data_rows.media import with_media
from apps.trajectories.formats.data_rows.row_trajectories import (
    OUTCOME_READ,
    answer_messages,
    row_trajectory,
)
from apps.trajectories.formats.data_rows.trainer_rows import Messages
from apps.trajectories.formats.placed import objects
from workers.errors import InvalidRecord
from workers.schema import Trajectory, clean
from workers.schema.decode import optional_str, require_list, require_object

SIGN = "an object with `instruction` and `output` (or `response`)"
_PROMPT = ("instruction", "input", "context", "history", "system")
_ANSWERS = ("output", "response")
READ = (*OUTCOME_READ, *(f"/{name}" for name in (*_PROMPT, *_ANSWERS, "generator")))
_MEDIA = ("images", "videos", "audios")


def sniff(document: Any) -> bool:
    return (
        isinstance(document, dict)
        and isinstance(_named(document).get("instruction"), str)
        and (
            any(isinstance(document.get(name), str | list) for name in _ANSWERS) or bool(_instances(document))
        )
    )


def _named(row: dict[str, Any]) -> dict[str, Any]:
    """The row with its `instruct` as the instruction."""
    if "instruction" in row or "instruct" not in row:
        return row
    return {("instruction" if key == "instruct" else key): value for key, value in row.items()}


def _instances(row: dict[str, Any]) -> list[dict[str, Any]]:
    """Of a seed task: the inputs of an instruction with their outputs."""
    found = objects(row.get("instances"))
    return found if all(isinstance(each.get("output"), str) for each in found) else []


def split(document: Any) -> Iterator[tuple[str, Any]]:
    """A document for each answer, where a row has several samples of one, and for each instance of a seed task. Raises
    InvalidRecord."""
    row = require_object(document)
    if instances := _instances(row):
        common = {key: value for key, value in row.items() if key != "instances"}
        for index, instance in enumerate(instances):
            yield f"/instances/{index}", common | instance
        return
    name = next((name for name in _ANSWERS if row.get(name) is not None), _ANSWERS[0])
    samples = row.get(name)
    if not isinstance(samples, list) or not samples or not all(isinstance(each, str) for each in samples):
        yield "", document
        return
    for index, sample in enumerate(samples):
        yield f"/{name}/{index}", row | {name: sample}


def read(document: Any) -> Trajectory:
    row, _ = clean(_named(require_object(document)))
    answer = next((name for name in _ANSWERS if row.get(name) is not None), _ANSWERS[0])
    prompt = with_media(prompt_messages(row), row)
    return row_trajectory(
        prompt,
        answer_messages(row, answer),
        row,
        known=(*_PROMPT, *_MEDIA, answer, "generator"),
        pointer=f"/{answer}",
        agent=optional_str(row.get("generator"), pointer="/generator") or "",
    )


def prompt_messages(row: dict[str, Any]) -> Messages:
    """System text, the turns before, and the instruction with its input below."""
    system = optional_str(row.get("system"), pointer="/system")
    found: Messages = [{"role": "system", "content": system}] if system else []
    for index, turn in enumerate(require_list(row.get("history") or [], pointer="/history")):
        if not isinstance(turn, list) or len(turn) != 2 or not all(isinstance(text, str) for text in turn):
            raise InvalidRecord(
                "a turn of the history is a list of two texts: what was asked and answered.",
                pointer=f"/history/{index}",
            )
        found += [{"role": "user", "content": turn[0]}, {"role": "assistant", "content": turn[1]}]
    names = [name for name in ("instruction", "input", "context") if row.get(name) is not None]
    texts = [optional_str(row[name], pointer=f"/{name}") or "" for name in names]
    return [*found, {"role": "user", "content": "\n".join(text for text in texts if text)}]
