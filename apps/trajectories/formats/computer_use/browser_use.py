"""browser-use's history (`save_to_file`): {"history": [{"model_output", "result", "state", "metadata"}]}.

`state` is the page before the model acted, with a screenshot as base64 (before 0.4) or as the path of a file; `result`
has an entry for each action. The task is not in the file, unless someone put it next to the history. That an agent says
its task is done (`is_done`, `success`) is no outcome; what a judge found (`judgement`, since 0.9) is.
"""

from typing import Any

from msgspec.structs import replace

from apps.trajectories.formats.benchmarks.browser import seen
from apps.trajectories.formats.computer_use.screens import call_of, in_turn, picture_source
from apps.trajectories.formats.fields import read_id
from apps.trajectories.formats.stated import (
    call_metrics,
    model_name,
    run_facts,
    stated_success,
    stated_task_id,
)
from workers.errors import InvalidRecord
from workers.schema import ObservationResult, Part, Step, Task, Trajectory, clean
from workers.schema.decode import json_type_name, optional_str, require_list, require_object
from workers.schema.messages import build_trajectory

SIGN = "an object with a `history` of objects with `model_output` and `state`"
READ = ("/history/*/result/*/judgement/verdict", "/success", "/task_id", "/history/*/result/*/images/*/data")
_PART_KEYS = ("model_output", "state")
_STATE = (
    "evaluation_previous_goal",
    "memory",
    "next_goal",
    "page_summary",
    "important_contents",
    "prev_action_evaluation",
)
_THOUGHT = ("thinking", "thought")
_VIEW = ("url", "title", "tabs", "pixels_above", "pixels_below", "page_info")
_KNOWN = ("history", "task", "task_id", "id", "model", "usage", "success")


def sniff(document: Any) -> bool:
    history = document.get("history") if isinstance(document, dict) else None
    if isinstance(history, dict):
        history = history.get("history")
    return isinstance(history, list) and bool(history) and all(map(_is_entry, history[:3]))


def _is_entry(value: Any) -> bool:
    return isinstance(value, dict) and all(key in value for key in _PART_KEYS)


def read(document: Any) -> Trajectory:
    document, _ = clean(require_object(document))
    history, at = document.get("history"), "/history"
    if isinstance(history, dict):
        history, at = history.get("history"), "/history/history"
    turns: list[tuple[ObservationResult | None, Step | None]] = []
    judgement = None
    for index, entry in enumerate(require_list(history, pointer=at)):
        where = f"{at}/{index}"
        entry = require_object(entry, pointer=where)
        results = [
            require_object(result, pointer=f"{where}/result/{n}")
            for n, result in enumerate(require_list(entry.get("result") or [], pointer=f"{where}/result"))
        ]
        judgement = next((result["judgement"] for result in results if result.get("judgement")), judgement)
        turns += _turns(entry, results, index, where)
    instruction = document.get("task") if isinstance(document.get("task"), str) else ""
    model = model_name(document)
    return build_trajectory(
        in_turn(instruction or "", turns),
        Task(id=stated_task_id(document), instruction=instruction or ""),
        pointer=at,
        id=read_id(document.get("id")),
        agent=model or "browser-use",
        success=_verdict(judgement) if isinstance(judgement, dict) else stated_success(document),
        metadata=run_facts(document, _usage(document.get("usage")), model=model)
        | {key: value for key, value in document.items() if key not in _KNOWN and value not in (None, {}, [])}
        | ({"judgement": judgement} if judgement else {}),
    )


def _verdict(judgement: dict[str, Any]) -> bool | None:
    verdict = judgement.get("verdict")
    if verdict is not None and not isinstance(verdict, bool):
        raise InvalidRecord(
            f"verdict is true or false, not {json_type_name(verdict)}.", pointer="/judgement/verdict"
        )
    return verdict


def _turns(
    entry: dict[str, Any], results: list[dict[str, Any]], index: int, where: str
) -> list[tuple[ObservationResult | None, Step | None]]:
    view = _view(require_object(entry.get("state") or {}, pointer=f"{where}/state"), where)
    found = tuple(result for given in results if (result := _result(given)) is not None)
    if entry.get("model_output") is None:  # the call of the model failed: the error is what is known
        return [(view, None), *((result, None) for result in found)]
    output = require_object(entry["model_output"], pointer=f"{where}/model_output")
    return [(view, replace(_acted(output, entry, index, where), observation=found))]


def _acted(output: dict[str, Any], entry: dict[str, Any], index: int, where: str) -> Step:
    state = (
        require_object(output.get("current_state") or {}, pointer=f"{where}/model_output/current_state")
        | output
    )
    said = {key: state[key] for key in _STATE if isinstance(state.get(key), str) and state[key]}
    thought = next((state[key] for key in _THOUGHT if isinstance(state.get(key), str) and state[key]), None)
    known = (*_STATE, *_THOUGHT, "action", "current_state")
    rest = {key: value for key, value in state.items() if key not in known and value not in (None, [], {})}
    times = require_object(entry.get("metadata") or {}, pointer=f"{where}/metadata")
    about = {"metadata": times} if times else {}
    if isinstance(entry.get("state_message"), str) and entry["state_message"]:
        about["state_message"] = entry["state_message"]
    return Step(
        source="agent",
        message=(Part(text="\n".join(f"{key.replace('_', ' ')}: {text}" for key, text in said.items())),)
        if said
        else (),
        reasoning=thought,
        tool_calls=tuple(
            call
            for n, action in enumerate(
                require_list(output.get("action") or [], pointer=f"{where}/model_output/action")
            )
            if (call := _call(require_object(action, pointer=f"{where}/model_output/action/{n}"), entry, n))
            is not None
        ),
        metrics=call_metrics({"input_tokens": times.get("input_tokens")}, _seconds(times)),
        extra={"source_index": index} | about | ({"model_output": rest} if rest else {}),
    )


def _seconds(times: dict[str, Any]) -> float | None:
    started, ended = times.get("step_start_time"), times.get("step_end_time")
    if isinstance(started, int | float) and isinstance(ended, int | float) and ended >= started:
        return ended - started
    return None


def _call(action: dict[str, Any], entry: dict[str, Any], n: int) -> Any:
    """{"click_element_by_index": {"index": 5}} as a call; where it clicked, if the result says so."""
    named = {
        name: value for name, value in action.items() if value is not None and name != "interacted_element"
    }
    if len(named) == 1:
        ((name, value),) = named.items()
        call = call_of({"name": name, "arguments": value if isinstance(value, dict) else {"value": value}})
    else:
        call = call_of(named) if named else None
    state = entry.get("state")
    elements = state.get("interacted_element") if isinstance(state, dict) else None
    element = (
        elements[n] if isinstance(elements, list) and n < len(elements) else action.get("interacted_element")
    )
    if call is None or not element:
        return call
    return replace(call, extra=call.extra | {"interacted_element": element})


def _result(given: dict[str, Any]) -> ObservationResult | None:
    texts = [
        given[key] for key in ("error", "extracted_content") if isinstance(given.get(key), str) and given[key]
    ]
    memory = given.get("long_term_memory")
    texts = texts or ([memory] if isinstance(memory, str) and memory else [])
    parts = [Part(text="\n".join(texts))] if texts else []
    images = given.get("images") if isinstance(given.get("images"), list) else None
    sources = [picture_source(image.get("data")) for image in images or () if isinstance(image, dict)]
    parts += [Part(type="image", source=source) for source in sources if source]
    known = ("error", "extracted_content", "images", "judgement")
    rest = {
        key: value
        for key, value in given.items()
        if key not in known and value not in (None, [], {}, False, *texts)
    }
    return ObservationResult(content=tuple(parts), extra=rest) if parts or rest else None


def _view(state: dict[str, Any], where: str) -> ObservationResult:
    picture = picture_source(state.get("screenshot") or state.get("screenshot_path"))
    about = {key: state[key] for key in _VIEW if state.get(key)}
    texts = [str(about[key]) for key in ("title", "url") if isinstance(about.get(key), str)]
    tree = optional_str(state.get("element_tree") if isinstance(state.get("element_tree"), str) else None)
    return seen("\n".join([*texts, *([tree] if tree else [])]), picture, about)


def _usage(usage: Any) -> Any:
    return usage if isinstance(usage, dict) else {}
