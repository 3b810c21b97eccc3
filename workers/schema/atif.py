"""ATIF (Agent Trajectory Interchange Format), v1.4 to v1.8, to a Trajectory and back.

ATIF counts steps from 1 (`step_id`); the Trajectory from 0, the source's number kept in extra["source_index"].
What ATIF has no field for (task, outcome, environment steps, numeric features) travels under `extra`.
"""

from typing import Any

from workers.errors import InvalidRecord
from workers.schema.decode import clean, convert, finite, optional_str, require_list, require_object
from workers.schema.messages import build_trajectory, decode_arguments
from workers.schema.records import ObservationResult, Part, Source, Step, Task, ToolCall, Trajectory

VERSIONS = tuple(f"ATIF-v1.{minor}" for minor in range(4, 9))
_SOURCES: dict[str, Source] = {"system": "system", "user": "user", "agent": "agent"}
_RAW = "__raw__"  # arguments that are no JSON object, which ATIF requires
_AS_IT_WAS = "__extra__"  # what is kept next to, where its names are also those that ATIF or we use there


def from_atif(document: Any, *, task: Task | None = None, pointer: str = "") -> Trajectory:
    """A Trajectory of an ATIF document. task: where the document names none. Raises InvalidRecord with a pointer."""
    document, _ = clean(require_object(document, pointer=pointer))
    version = document.get("schema_version")
    if version not in VERSIONS:
        raise InvalidRecord(
            f"unknown schema_version {version!r}; known are {VERSIONS[0]} to {VERSIONS[-1]}.",
            pointer=f"{pointer}/schema_version",
        )
    agent = require_object(document.get("agent") or {}, pointer=f"{pointer}/agent")
    extra = dict(require_object(document.get("extra") or {}, pointer=f"{pointer}/extra"))
    session = document.get("session_id") or document.get("trajectory_id")
    if "task" in extra:
        task = convert(extra.pop("task"), Task, pointer=f"{pointer}/extra/task")
    outcome = require_object(extra.pop("outcome", {}), pointer=f"{pointer}/extra/outcome")
    success = outcome.get("success")
    if success is not None and not isinstance(success, bool):
        raise InvalidRecord("success is true or false.", pointer=f"{pointer}/extra/outcome/success")
    rest = {key: value for key, value in document.items() if key not in _TOP and value is not None}
    if _AS_IT_WAS in extra:
        extra = require_object(extra[_AS_IT_WAS], pointer=f"{pointer}/extra/{_AS_IT_WAS}")
    metadata = extra | ({"atif": rest} if rest else {})
    agent_rest = {key: value for key, value in agent.items() if key not in ("name", "version")}
    return build_trajectory(
        _steps(document, pointer),
        task or Task(id=str(session or "")),
        pointer=f"{pointer}/steps",
        id=optional_str(session, pointer=f"{pointer}/session_id"),
        agent=str(agent.get("name") or ""),
        agent_version=str(agent.get("version") or ""),
        reward=finite(outcome.get("reward"), pointer=f"{pointer}/extra/outcome/reward"),
        success=success,
        metadata=metadata | ({"agent": agent_rest} if agent_rest else {}),
    )


_TOP = ("schema_version", "session_id", "trajectory_id", "agent", "steps", "extra")


def to_atif(trajectory: Trajectory) -> dict[str, Any]:
    """An ATIF v1.7 document; `from_atif` gives the same trajectory back."""
    metadata, rest, agent = dict(trajectory.metadata), {}, {}
    if {"task", "outcome", _AS_IT_WAS} & metadata.keys() or not _are_objects(metadata, "atif", "agent"):
        metadata = {_AS_IT_WAS: metadata}
    else:
        rest, agent = metadata.pop("atif", {}), metadata.pop("agent", {})
    task = trajectory.task
    extra: dict[str, Any] = metadata | {"task": {"id": task.id, "instruction": task.instruction}}
    if task.reference is not None:
        extra["task"]["reference"] = task.reference
    if task.metadata:
        extra["task"]["metadata"] = task.metadata
    outcome = {"reward": trajectory.reward, "success": trajectory.success}
    if outcome != {"reward": None, "success": None}:
        extra["outcome"] = {key: value for key, value in outcome.items() if value is not None}
    return rest | {
        "schema_version": "ATIF-v1.7",
        "session_id": trajectory.id or trajectory.content_hash,
        "agent": {"name": trajectory.agent or "unknown", "version": trajectory.agent_version or "unknown"}
        | agent,
        "steps": [_step_out(step, index) for index, step in enumerate(trajectory.steps)],
        "extra": extra,
    }


def _steps(document: dict[str, Any], pointer: str) -> tuple[Step, ...]:
    steps: list[Step] = []
    last = None
    for index, raw in enumerate(require_list(document.get("steps"), pointer=f"{pointer}/steps")):
        at = f"{pointer}/steps/{index}"
        raw = require_object(raw, pointer=at)
        number = raw.get("step_id", index + 1)
        if isinstance(number, bool) or not isinstance(number, int):
            raise InvalidRecord("step_id is a whole number, from 1.", pointer=f"{at}/step_id")
        if last is not None and number <= last:
            what = (
                "a duplicate step index"
                if number == last or number in _ids(document, index)
                else "out of order"
            )
            raise InvalidRecord(
                f"step_id {number} is {what}; number the steps 1, 2, 3, ...", pointer=f"{at}/step_id"
            )
        last = number
        steps.append(_step(raw, number, at))
    return tuple(steps)


def _ids(document: dict[str, Any], before: int) -> set[Any]:
    return {step.get("step_id") for step in document["steps"][:before]}


def _step(raw: dict[str, Any], number: int, at: str) -> Step:
    extra = dict(require_object(raw.get("extra") or {}, pointer=f"{at}/extra"))
    kept = extra.pop(_AS_IT_WAS, None)
    source_text = str(raw.get("source"))
    source = "environment" if extra.get("source") == "environment" else _SOURCES.get(source_text)
    if source is None:
        raise InvalidRecord(
            f"unknown source {source_text[:40]!r}; known are {', '.join(_SOURCES)}.", pointer=f"{at}/source"
        )
    extra.pop("source", None)
    calls = tuple(
        _call(call, f"{at}/tool_calls/{index}")
        for index, call in enumerate(require_list(raw.get("tool_calls") or [], pointer=f"{at}/tool_calls"))
    )
    features = extra.pop("features", None)
    message = None if extra.pop("message_is_null", False) else raw.get("message")
    rest = {key: value for key, value in raw.items() if key not in _STEP and value is not None}
    reward = finite(extra.pop("reward", None), pointer=f"{at}/extra/reward")
    if kept is not None:
        extra = require_object(kept, pointer=f"{at}/extra/{_AS_IT_WAS}")
    return Step(
        source=source,
        message=_parts(message, f"{at}/message"),
        reasoning=optional_str(raw.get("reasoning_content"), pointer=f"{at}/reasoning_content"),
        tool_calls=calls,
        observation=_observation(raw.get("observation"), {call.id for call in calls}, f"{at}/observation"),
        features=None
        if features is None
        else convert(features, tuple[float, ...], pointer=f"{at}/extra/features"),
        reward=reward,
        metrics=require_object(raw.get("metrics") or {}, pointer=f"{at}/metrics"),
        extra={"source_index": number} | extra | ({"atif": rest} if rest else {}),
    )


_STEP = ("step_id", "source", "message", "reasoning_content", "tool_calls", "observation", "metrics", "extra")


def _call(raw: Any, at: str) -> ToolCall:
    raw = require_object(raw, pointer=at)
    if not isinstance(raw.get("function_name"), str):
        raise InvalidRecord("a tool call needs a function_name.", pointer=f"{at}/function_name")
    arguments = raw.get("arguments", {})
    arguments = arguments[_RAW] if isinstance(arguments, dict) and arguments.keys() == {_RAW} else arguments
    decoded, text = decode_arguments(arguments, pointer=f"{at}/arguments")
    known = ("tool_call_id", "function_name", "arguments")
    return ToolCall(
        id=optional_str(raw.get("tool_call_id"), pointer=f"{at}/tool_call_id"),
        name=raw["function_name"],
        arguments=decoded,
        raw=text,
        extra={key: value for key, value in raw.items() if key not in known},
    )


def _observation(raw: Any, calls: set[str | None], at: str) -> tuple[ObservationResult, ...]:
    if raw is None:
        return ()
    results = []
    for index, result in enumerate(
        require_list(require_object(raw, pointer=at).get("results") or [], pointer=at)
    ):
        where = f"{at}/results/{index}"
        result = require_object(result, pointer=where)
        call_id = optional_str(result.get("source_call_id"), pointer=f"{where}/source_call_id")
        if call_id is not None and call_id not in calls:
            raise InvalidRecord(
                f"a tool result without its call: this step has no call {call_id!r}.",
                pointer=f"{where}/source_call_id",
            )
        known = ("source_call_id", "content")
        extra = {key: value for key, value in result.items() if key not in known and value is not None}
        if _AS_IT_WAS in extra:
            extra = require_object(extra[_AS_IT_WAS], pointer=f"{where}/{_AS_IT_WAS}")
        results.append(
            ObservationResult(
                call_id=call_id, content=_parts(result.get("content"), f"{where}/content"), extra=extra
            )
        )
    return tuple(results)


def _parts(content: Any, at: str) -> tuple[Part, ...]:
    if content is None:
        return ()
    if isinstance(content, str):
        return (Part(text=content),)
    parts = []
    for index, raw in enumerate(require_list(content, pointer=at)):
        raw = require_object(raw, pointer=f"{at}/{index}")
        source = require_object(raw.get("source") or {}, pointer=f"{at}/{index}/source")
        fields = {"type": raw.get("type"), "text": raw.get("text"), "source": source.get("path")}
        known = ("type", "text", "source", "extra")
        extra = (raw.get("extra") or {}) | {key: value for key, value in raw.items() if key not in known}
        parts.append(
            convert(
                fields | {"media_type": source.get("media_type"), "extra": extra},
                Part,
                pointer=f"{at}/{index}",
            )
        )
    return tuple(parts)


def _step_out(step: Step, index: int) -> dict[str, Any]:
    plain = not _OURS & step.extra.keys() and _are_objects(step.extra, "atif")
    extra = {key: value for key, value in step.extra.items() if key != "atif"}
    extra = extra if plain else {_AS_IT_WAS: step.extra}
    if step.source == "environment":
        extra["source"] = "environment"
    if step.features is not None:
        extra["features"] = list(step.features)
    if step.reward is not None:
        extra["reward"] = step.reward
    out: dict[str, Any] = (step.extra.get("atif", {}) if plain else {}) | {
        "step_id": index + 1,
        "source": "system" if step.source == "environment" else step.source,
        "message": _content_out(step.message) if step.message else "",
    }
    if not step.message:
        extra["message_is_null"] = True
    if step.reasoning is not None:
        out["reasoning_content"] = step.reasoning
    if step.tool_calls:
        out["tool_calls"] = [_call_out(call) for call in step.tool_calls]
    if step.observation:
        out["observation"] = {"results": [_result_out(result) for result in step.observation]}
    if step.metrics:
        out["metrics"] = step.metrics
    return out | ({"extra": extra} if extra else {})


_OURS = {"source", "features", "reward", "message_is_null", _AS_IT_WAS}


def _are_objects(given: dict[str, Any], *names: str) -> bool:
    return all(isinstance(given.get(name, {}), dict) for name in names)


def _call_out(call: ToolCall) -> dict[str, Any]:
    arguments = (
        call.arguments
        if isinstance(call.arguments, dict) and call.raw is None
        else {_RAW: call.arguments_text}
    )
    return call.extra | {"tool_call_id": call.id, "function_name": call.name, "arguments": arguments}


def _result_out(result: ObservationResult) -> dict[str, Any]:
    content = _content_out(result.content) if result.content else None
    extra = result.extra
    if {"source_call_id", "content", _AS_IT_WAS} & extra.keys() or None in extra.values():
        extra = {_AS_IT_WAS: extra}
    return extra | {"source_call_id": result.call_id, "content": content}


def _content_out(parts: tuple[Part, ...]) -> Any:
    if len(parts) == 1 and parts[0].type == "text" and not parts[0].extra:
        return parts[0].text
    return [_part_out(part) for part in parts]


def _part_out(part: Part) -> dict[str, Any]:
    extra = {"extra": part.extra} if part.extra else {}
    if part.type == "text":
        return {"type": "text", "text": part.text} | extra
    return {"type": part.type, "source": {"media_type": part.media_type, "path": part.source}} | extra
