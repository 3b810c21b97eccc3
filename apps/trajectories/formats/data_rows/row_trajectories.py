"""A prompt with an answer of a row as a trajectory: what the formats of data rows have in common.

The task is the prompt's content, so that all answers to one prompt are trajectories of one task. Labels of people and
judges (scores, ranks, winners) are no outcome: they stay in the metadata, which no model reads, and `import_feedback`
reads them from the same rows.
"""

from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from apps.trajectories.formats.data_rows.trainer_rows import Messages, message_column, prompt_task
from apps.trajectories.formats.stated import SUCCESS_KEYS, model_name, run_facts, stated_success
from apps.trajectories.formats.written_calls import with_written_calls
from workers.errors import InvalidRecord
from workers.schema import Task, Trajectory, from_messages, parse_json
from workers.schema.decode import finite, json_type_name
from workers.schema.messages import build_trajectory

OUTCOME_READ = (*(f"/{key}" for key in SUCCESS_KEYS), "/reward", "/id")


def user_text(text: str) -> Messages:
    return [{"role": "user", "content": text}] if text else []


def agent_text(text: str) -> Messages:
    return [{"role": "assistant", "content": text}]


def answer_messages(row: dict[str, Any], name: str) -> Messages:
    """A column that holds an answer: text (an empty one too), a message, or messages, also as JSON text."""
    value = row.get(name)
    if isinstance(value, str):
        decoded = decoded_messages(value)
        return agent_text(value) if decoded is value else message_column({name: decoded}, name)
    if value is None:
        raise InvalidRecord(f"{name} is missing.", pointer=f"/{name}")
    return message_column(row, name)


def decoded_messages(value: Any) -> Any:
    """Messages that a data set keeps as JSON text, whose columns have one type; anything else as it is."""
    if isinstance(value, str) and value.lstrip().startswith("[{"):
        found = _decoded(value)
        if isinstance(found, list) and all(map(_is_message, found)):
            return found
    return value


def _is_message(value: Any) -> bool:
    return isinstance(value, dict) and ("role" in value or "from" in value)


def required_text(row: dict[str, Any], name: str) -> str:
    value = row.get(name)
    if not isinstance(value, str):
        raise InvalidRecord(f"expected a string, got {json_type_name(value)}.", pointer=f"/{name}")
    return value


def row_trajectory(
    prompt: Messages,
    answer: Messages,
    row: dict[str, Any],
    *,
    known: Iterable[str],
    pointer: str,
    task: Task | None = None,
    reference: Any = None,
    usage: Any = None,
    **fields: Any,
) -> Trajectory:
    """row: what stands around the two. known: its columns that are read elsewhere; the others are metadata.

    task: where it is not the prompt. fields: those of Trajectory, instead of what the row states.
    """
    from_messages(answer, pointer=pointer)  # for an error that points into the column
    steps = from_messages(with_written_calls([*prompt, *answer]))
    task = task or prompt_task(prompt, [answer])
    if isinstance(reference, str) and reference and task.reference is None:
        task = replace(task, reference=reference)
    columns = {*known, "reward", *(["id"] if "id" not in fields else [])}
    rest = {name: value for name, value in row.items() if name not in columns}
    if isinstance(tools := rest.get("tools"), str) and tools.lstrip().startswith("["):
        rest["tools"] = _decoded(tools)
    model = fields.pop("agent", "") or model_name(row)
    facts = run_facts(row, row.get("usage"), usage, model=model)
    if isinstance(rest.get("usage"), dict):
        facts["usage"] = rest.pop("usage") | facts.get("usage", {})
    stated = {"id": row_id(row.get("id")), "success": stated_success(row)} | fields
    if "reward" not in fields:
        stated["reward"] = finite(row.get("reward"), pointer="/reward")
    extra = stated.pop("metadata", {})
    return build_trajectory(
        steps, task, pointer=pointer, agent=model, metadata=facts | rest | extra, **stated
    )


def _decoded(text: str) -> Any:
    """What JSON text holds, or the text where it is none."""
    try:
        return parse_json(text)
    except InvalidRecord:
        return text


def row_id(value: Any) -> str | None:
    """An id that is text or a whole number; anything else is none."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        return None
    return str(value)
