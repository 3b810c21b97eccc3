"""The Agent Data Protocol (arXiv 2510.24702): {"id", "content": [{"class_", ...}], "details"}, of any schema version.

Items are actions (`api_action`, `code_action`, `message_action`) and observations (`text_`, `web_`, `image_`,
`json_observation`). An observation with a `tool_call_id` is the result of that call; without one it is that of the call
right before it, as the protocol's own converters take it, whoever is said to be its source.
"""

import json
from typing import Any

from msgspec.structs import replace

from apps.trajectories.formats.benchmarks.browser import seen
from apps.trajectories.formats.computer_use.screens import picture_source
from apps.trajectories.formats.fields import read_id
from apps.trajectories.formats.stated import (
    SUCCESS_KEYS,
    model_name,
    run_facts,
    stated_success,
    stated_task_id,
)
from workers.errors import InvalidRecord
from workers.schema import ObservationResult, Part, Step, Task, ToolCall, Trajectory, clean
from workers.schema.decode import finite, optional_str, require_list, require_object
from workers.schema.messages import build_trajectory

SIGN = "an object with a `content` of objects with a `class_`"
READ = (
    *("/content/*/class_", "/details/reward", "/details/task_id", "/details/instance_id"),
    *(f"/details/{key}" for key in SUCCESS_KEYS),
)
_ACTIONS = ("api_action", "code_action", "message_action")
_TEXTS = ("text_observation", "json_observation")
_PICTURE = "image_observation"
_AGENT = ("agent", "assistant")
_WRITTEN = {"true": True, "false": False}  # `details` are texts, in the first versions of the schema


def sniff(document: Any) -> bool:
    content = document.get("content") if isinstance(document, dict) else None
    return (
        isinstance(content, list)
        and bool(content)
        and isinstance(content[0], dict)
        and "class_" in content[0]
    )


def read(document: Any) -> Trajectory:
    document, _ = clean(require_object(document))
    steps: list[Step] = []
    made: dict[str, int] = {}  # the step of each call that has an id
    for index, item in enumerate(require_list(document.get("content"), pointer="/content")):
        where = f"/content/{index}"
        item = require_object(item, pointer=where)
        kind = item.get("class_")
        if kind in _ACTIONS:
            steps.append(_action(item, index, where))
            made |= {call.id: len(steps) - 1 for call in steps[-1].tool_calls if call.id}
        elif isinstance(kind, str) and kind.endswith("_observation"):
            _observe(steps, made, item, index, where)
        else:
            raise InvalidRecord(
                f"{kind!r} is no action and no observation of the protocol.", pointer=f"{where}/class_"
            )
    details = require_object(document.get("details") or {}, pointer="/details")
    written = {key: details[key] for key in SUCCESS_KEYS if isinstance(details.get(key), str)}
    facts = details | {key: _WRITTEN.get(text.lower()) for key, text in written.items()}
    instruction = next((step.text for step in steps if step.source == "user"), "")
    reward = details.get("reward")
    model = model_name(details)
    return build_trajectory(
        tuple(steps),
        Task(id=stated_task_id(details), instruction=instruction),
        pointer="/content",
        id=read_id(document.get("id")),
        agent=model,
        reward=finite(reward, pointer="/details/reward") if isinstance(reward, int | float) else None,
        success=stated_success(facts, pointer="/details/success"),
        metadata=run_facts(details, model=model)
        | {key: value for key, value in document.items() if key not in ("id", "content", "details")}
        | ({"details": details} if details else {}),
    )


def _action(item: dict[str, Any], index: int, where: str) -> Step:
    thought = optional_str(item.get("description"), pointer=f"{where}/description")
    reasoning = optional_str(item.get("reasoning_content"), pointer=f"{where}/reasoning_content")
    identity = read_id(item.get("tool_call_id"), pointer=f"{where}/tool_call_id")
    said = thought
    calls: tuple[ToolCall, ...] = ()
    if item["class_"] == "api_action":
        name = optional_str(item.get("function"), pointer=f"{where}/function") or "unnamed"
        arguments = item.get("kwargs")
        arguments = (
            arguments
            if isinstance(arguments, dict | str)
            else {}
            if arguments is None
            else {"kwargs": arguments}
        )
        calls = (ToolCall(id=identity, name=name, arguments=arguments),)
    elif item["class_"] == "code_action":
        code = optional_str(item.get("content"), pointer=f"{where}/content") or ""
        language = optional_str(item.get("language"), pointer=f"{where}/language") or "code"
        calls = (ToolCall(id=identity, name=language, arguments={"code": code}),)
    else:
        said = optional_str(item.get("content"), pointer=f"{where}/content")
        reasoning = "\n".join(text for text in (reasoning, thought) if text) or None
    known = (
        "class_",
        "description",
        "reasoning_content",
        "tool_call_id",
        "function",
        "kwargs",
        "content",
        "language",
    )
    rest = {key: value for key, value in item.items() if key not in (*known, "reward") and value is not None}
    return Step(
        source="agent",
        message=(Part(text=said),) if said else (),
        reasoning=reasoning,
        tool_calls=calls,
        reward=finite(item.get("reward"), pointer=f"{where}/reward"),
        extra={"source_index": index} | rest,
    )


def _observe(steps: list[Step], made: dict[str, int], item: dict[str, Any], index: int, where: str) -> None:
    view = _view(item, where)
    if isinstance(item.get("source"), str):
        view = replace(view, extra=view.extra | {"source": item["source"]})
    identity = read_id(item.get("tool_call_id"), pointer=f"{where}/tool_call_id")
    source, last = item.get("source"), steps[-1] if steps else None
    extra = {"source_index": index}
    if identity in made:
        place = made[identity or ""]
        steps[place] = _with(steps[place], replace(view, call_id=identity), item, where)
    elif (
        last is not None
        and last.source == "agent"
        and (last.tool_calls or source in (None, "environment", "system"))
    ):
        calls = [call.id for call in last.tool_calls if call.id]
        is_first = len(calls) == 1 and all(result.call_id is None for result in last.observation)
        tied = replace(view, call_id=calls[0]) if is_first and not last.observation else view
        steps[-1] = _with(last, tied, item, where)
    elif (
        source in _AGENT
        or source == "user"
        or (source == "system" and not any(s.source == "agent" for s in steps))
    ):
        role: Any = "agent" if source in _AGENT else source
        name = optional_str(item.get("name"), pointer=f"{where}/name")
        steps.append(Step(source=role, speaker=name or None, message=view.content, extra=extra | view.extra))
    else:
        steps.append(Step(source="environment", observation=(view,), extra=extra))


def _with(step: Step, view: ObservationResult, item: dict[str, Any], where: str) -> Step:
    reward = finite(item.get("reward"), pointer=f"{where}/reward")
    found = replace(step, observation=(*step.observation, view))
    return found if reward is None else replace(found, reward=(step.reward or 0) + reward)


def _view(item: dict[str, Any], where: str) -> ObservationResult:
    kind = item["class_"]
    if kind in _TEXTS:
        content = item.get("content")
        text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
        view = seen("", "", {"name": item["name"]} if item.get("name") else {})
        return replace(view, content=(Part(text=text),))
    if kind == _PICTURE:
        about = {"annotations": item["annotations"]} if item.get("annotations") else {}
        return seen("", picture_source(item.get("content")), about)
    held = item.get("image_observation")
    held = require_object(held or {}, pointer=f"{where}/image_observation")
    trees = [item[key] for key in ("axtree", "html") if isinstance(item.get(key), str) and item[key]]
    known = ("class_", "axtree", "image_observation", "source", "reward", "tool_call_id")
    about = {key: value for key, value in item.items() if key not in known and value is not None}
    about = {key: value for key, value in about.items() if not trees or value is not trees[0]}
    rest = {key: value for key, value in held.items() if key != "content" and value is not None}
    about |= {"image_observation": rest} if rest else {}
    return seen(trees[0] if trees else "", picture_source(held.get("content")), about)
