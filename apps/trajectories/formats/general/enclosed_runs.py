"""Runs that stand deeper in a document than where formats look: {"attempts": [{"turns": [...]}], "target_model"},
{"question", "trials": [{"trajectory": [{"action", "observation"}]}]}, {"conversation_log": {"messages": [...]}}.

Tried only where no format reads the document, nor records under its keys (`wrapped`). A run is a list of chat messages
of an API, of turns of speakers who are known (`turns`), or of steps of an action and what was observed
(`action-steps`); each is a trajectory. Of lists in one object, or in objects in it, those of one kind are read, in this
order; others stay with it. What was asked may stand in any object around a run. What stands around it is its metadata,
and its place is `run_path`.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from msgspec.structs import replace

from apps.trajectories.formats.chat import openai
from apps.trajectories.formats.data_rows.row_trajectories import decoded_messages
from apps.trajectories.formats.general import action_steps, turn_lists
from apps.trajectories.formats.general.row_names import PROMPTS, first_name
from apps.trajectories.formats.placed import storable
from apps.trajectories.formats.record import encoded
from apps.trajectories.formats.stated import SUCCESS_KEYS, model_name, run_facts, stated_task_id
from workers.errors import InvalidRecord
from workers.schema import Trajectory, clean
from workers.schema.decode import escape, require_list, require_object
from workers.schema.message_shapes import ROLES, is_of_framework

SIGN = "a document with lists of messages, turns or steps somewhere in it, where nothing else reads it"
LAST_RESORT = True
_KINDS = ("messages", "turns", "steps")
_DEEPEST = 8  # levels that are looked into
_MOST_AROUND = 16 * 2**10  # bytes of what stands around a run, as JSON
_RUN, _KIND, _ASKED, _PATH = "run", "run_kind", "run_asked", "run_path"
_KEYS = frozenset((_RUN, _KIND, _ASKED, _PATH))
# What is next to runs, and is none: examples for a prompt, and how something was set up.
_NO_RUNS = frozenset(
    (
        *(
            "few_shot",
            "few_shots",
            "few_shot_examples",
            "fewshot",
            "examples",
            "demonstrations",
            "demos",
            "icl",
        ),
        *(
            "config",
            "configuration",
            "settings",
            "tools",
            "functions",
            "prompt_template",
            "golden_action",
            "gold",
        ),
        *("golden_actions", "reference", "ground_truth", "expected", "expected_actions", "expected_output"),
    )
)
_TASKS = (*PROMPTS, "task", "objective", "intent", "description", "question_text")
_ABOUT_TASK = ("task", "problem", "instance", "sample", "example", "scenario", "test_case", "metadata")
READ = (f"/{_ASKED}", f"/{_PATH}", f"/{_KIND}", f"/{_RUN}/*/reward", *(f"/{key}" for key in SUCCESS_KEYS))


class _Found(NamedTuple):
    """path: of the list. holders: the objects around it, the outermost first."""

    path: tuple[str, ...]
    kind: str
    run: list[Any]
    holders: tuple[dict[str, Any], ...]


def sniff(document: Any) -> bool:
    return isinstance(document, dict | list) and next(_walk(document, (), ()), None) is not None


def _kind(value: Any) -> str:
    if not isinstance(value, list) or not value or not all(isinstance(each, dict) for each in value):
        return ""
    if len(value) > 1 and _has_states(value):
        return ""
    if all(_is_message(each) for each in value) and any(_is_answer(each) for each in value):
        return "messages"
    if turn_lists.is_conversation(value):
        return "turns"
    return "steps" if action_steps.is_run(value) else ""


def _has_states(value: list[dict[str, Any]]) -> bool:
    """Whether messages are states of one another, as it was streamed."""
    names = [
        each["id"] for each in value if isinstance(each.get("id"), str) and each["id"] and "role" in each
    ]
    return len(set(names)) < len(names)


def _is_message(value: dict[str, Any]) -> bool:
    role = value.get("role")
    if not isinstance(role, str):
        return is_of_framework(value)
    return role.lower() in ROLES and ("content" in value or "tool_calls" in value or "parts" in value)


def _is_answer(value: dict[str, Any]) -> bool:
    role = value.get("role", value.get("type"))
    return isinstance(role, str) and ROLES.get(role.lower()) == "assistant"


def _walk(value: Any, path: tuple[str, ...], holders: tuple[dict[str, Any], ...]) -> Iterator[_Found]:
    if len(path) > _DEEPEST:
        return
    if isinstance(value, list):
        if kind := _kind(value):
            found = _Found(path, kind, value, holders)
            if (
                len(value) > 1 or not _is_answer(value[0]) or _asked(found)
            ):  # else it answers what stands elsewhere
                yield found
            return
        for index, each in enumerate(value):
            if isinstance(each, dict | list):
                yield from _walk(each, (*path, str(index)), holders)
    elif isinstance(value, dict):
        yield from _members(value, path, (*holders, value))


def _members(
    value: dict[str, Any], path: tuple[str, ...], holders: tuple[dict[str, Any], ...]
) -> Iterator[_Found]:
    members = {key: decoded_messages(each) for key, each in value.items() if key.lower() not in _NO_RUNS}
    found = [run for key, each in members.items() for run in _walk(each, (*path, key), holders)]
    near = [run.kind for run in found if not _is_in_list(run, len(path))]
    best = next((kind for kind in _KINDS if kind in near), "")
    yield from (run for run in found if run.kind == best or _is_in_list(run, len(path)))


def _is_in_list(run: _Found, depth: int) -> bool:
    """Whether a run is one of a list of records below an object at that depth."""
    return any(key.isdigit() for key in run.path[depth:])


def split(document: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(document, dict) and document.keys() >= _KEYS:
        yield "", document  # one of those below
        return
    found = list(_walk(document, (), ()))
    if not found:
        raise InvalidRecord("has no list of messages, turns or steps.")
    on_path = {id(each) for run in found for each in (*run.holders, run.run)}
    for run in found:
        pointer = "".join(f"/{escape(key)}" for key in run.path)
        about = {_RUN: run.run, _KIND: run.kind, _ASKED: _asked(run), _PATH: pointer}
        yield pointer, _around(run, on_path) | about


def _asked(found: _Found) -> str:
    """What was asked: a text of an object around the run, or of the task that is an object in one."""
    for holder in reversed(found.holders):
        for about in (holder, *(holder[key] for key in _ABOUT_TASK if isinstance(holder.get(key), dict))):
            if name := first_name(about, _TASKS):
                return str(about[name])
    return ""


def _around(found: _Found, on_path: set[int]) -> dict[str, Any]:
    """What stands around a run without other runs, the nearest first, as much as it can hold."""
    kept: dict[str, Any] = {}
    size = 0
    for holder in reversed(found.holders):
        for key, value in holder.items():
            if key in kept or key in _KEYS or value in (None, "", [], {}) or _holds(value, on_path):
                continue
            size += len(encoded(value))
            if size <= _MOST_AROUND:
                kept[key] = value
    return kept


def _holds(value: Any, on_path: set[int]) -> bool:
    """Whether a run is in it."""
    if isinstance(value, str):
        return decoded_messages(value) is not value
    if id(value) in on_path:
        return True
    if isinstance(value, dict | list):
        return any(_holds(each, on_path) for each in (value.values() if isinstance(value, dict) else value))
    return False


@storable
def read(document: Any) -> Trajectory:
    row, _ = clean(require_object(document))
    run, kind, asked = require_list(row.get(_RUN), pointer=f"/{_RUN}"), row.get(_KIND), row.get(_ASKED)
    around = {key: value for key, value in row.items() if key not in _KEYS}
    asked = asked if isinstance(asked, str) else ""
    answered = first_name(around, action_steps.FINALS)
    found = _read_run(run, kind, asked, {answered: around[answered]} if answered else {})
    task = found.task
    task = replace(task, id=stated_task_id(around) or task.id, instruction=task.instruction or asked)
    model = model_name(around)
    outcome = next((around[key] for key in SUCCESS_KEYS if isinstance(around.get(key), bool)), None)
    return replace(
        found,
        task=task,
        agent=found.agent or model,
        success=found.success if found.success is not None else outcome,
        metadata=run_facts(around, model=model) | around | found.metadata | {_PATH: row.get(_PATH)},
    )


def _read_run(run: list[Any], kind: Any, asked: str, final: dict[str, str]) -> Trajectory:
    """final: what the agent answered after its steps."""
    try:
        if kind == "messages":
            return openai.read({"messages": run})
        if kind == "turns":
            return turn_lists.read({"turns": run})
        return action_steps.read({"steps": run} | ({"task": asked} if asked else {}) | final)
    except InvalidRecord as error:
        at = (error.pointer or "").partition("/")[2].partition("/")[2]
        raise InvalidRecord(error.message, pointer=f"/{_RUN}" + (f"/{at}" if at else "")) from None
