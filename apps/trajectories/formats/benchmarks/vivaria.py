"""Runs of METR's Vivaria: trace entries {"runId", "index", "agentBranchNumber", "content": {"type": ...}}, one a line,
in a list, or as `traceEntries` of a run.

As shared/src/types.ts of Vivaria has them. A `generation` has what a model was asked and answered; the branch's run is
what was asked last, with that answer. Without one, `action`, `observation`, `log` and `submission` are the run.
"""

import json
from typing import Any

from apps.trajectories.formats.event_log import ALONE, event_log
from apps.trajectories.formats.placed import object_at, objects, storable, summed, text_at
from apps.trajectories.formats.stated import run_facts
from workers.errors import InvalidRecord
from workers.schema import Task, Trajectory, from_messages
from workers.schema.decode import finite, require_list
from workers.schema.messages import build_trajectory

SIGN = (
    "entries with a `runId` and a `content` that has a `type` such as generation, or `traceEntries` of them"
)
Message = dict[str, Any]
_LISTS = ("traceEntries", "trace_entries")
READ = (
    *(
        f"{at}/{key}"
        for at in ("/*", *(f"/*/{name}/*" for name in _LISTS))
        for key in ("content/type", "runId")
    ),
    *("/*/score", "/*/taskId"),
)
REPEATED = tuple(
    f"{at}/content/{key}"
    for at in ("/*", *(f"/*/{name}/*" for name in _LISTS))
    for key in ("agentRequest", "finalResult", "action", "observation", "value", "content")
)


def _entry(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and ("runId" in value or "run_id" in value)
        and isinstance(object_at(value, "content").get("type"), str)
    )


def _listed(value: Any) -> list[Message]:
    return next((objects(value[key]) for key in _LISTS if isinstance(value.get(key), list)), [])


def _key(event: Any) -> str:
    if not _entry(event):
        return ALONE
    return f"{event.get('runId', event.get('run_id'))}/{event.get('agentBranchNumber', 0)}"


Gathered = event_log(key=_key)


def sniff(document: Any) -> bool:
    if isinstance(document, list):
        return bool(document) and all(map(_entry, document[:2]))
    if _entry(document):
        return True
    entries = _listed(document) if isinstance(document, dict) else []
    return bool(entries) and all(map(_entry, entries[:2]))


@storable
def read(document: Any) -> Trajectory:
    rows = objects(require_list(document))
    run = rows[0] if rows and not _entry(rows[0]) else {}
    entries = _listed(run) if run else rows
    contents = [object_at(entry, "content") for entry in entries]
    calls = [each for each in contents if each.get("type") == "generation" and _asked(each)]
    messages = [*_asked(calls[-1]), *_answered(calls[-1])] if calls else []
    if not any(message.get("role") == "assistant" for message in messages):
        messages = [message for content in contents if (message := _message(content))]
    if not messages:
        raise InvalidRecord("no entry is an action or a call of a model, so it holds no run; leave it out.")
    if submitted := next(
        (text_at(each, "value") for each in contents if each.get("type") == "submission"), ""
    ):
        messages.append({"role": "assistant", "content": submitted, "type": "submission"})
    steps = from_messages([{key: value for key, value in each.items() if key != "type"} for each in messages])
    settings = object_at(object_at(calls[-1], "agentRequest"), "settings") if calls else {}
    first = entries[0] if entries else {}
    identity = first.get("runId", first.get("run_id", run.get("id")))
    usage = summed(_usage(object_at(call, "finalResult")) for call in calls)
    around = {key: value for key, value in run.items() if key not in (*_LISTS, "score", "taskId", "id")}
    return build_trajectory(
        steps,
        Task(id=text_at(run, "taskId")),
        id=None if identity is None else f"{identity}/{first.get('agentBranchNumber', 0)}",
        agent=text_at(settings, "model"),
        reward=finite(run.get("score"), pointer="/score"),
        metadata=run_facts(usage, model=text_at(settings, "model")) | around | {"entries": entries},
    )


def _asked(call: Message) -> list[Message]:
    request = object_at(call, "agentRequest")
    messages = objects(request.get("messages"))
    prompt = text_at(request, "prompt")
    return messages or ([{"role": "user", "content": prompt}] if prompt else [])


def _answered(call: Message) -> list[Message]:
    outputs = objects(object_at(call, "finalResult").get("outputs"))[:1]
    found = []
    for output in outputs:
        thought = text_at(output, "reasoning_completion")
        answer: Message = {"role": "assistant", "content": output.get("completion") or None}
        answer |= {"reasoning_content": thought} if thought else {}
        if output.get("function_call"):
            called = output["function_call"]
            answer["function_call"] = {"name": called, "arguments": ""} if isinstance(called, str) else called
        found.append(answer)
    return found


def _usage(result: Message) -> Message:
    counts = {"input_tokens": "n_prompt_tokens_spent", "output_tokens": "n_completion_tokens_spent"}
    found = {name: result[key] for name, key in counts.items() if result.get(key) is not None}
    return found | ({"cost": result["cost"]} if result.get("cost") is not None else {})


def _message(content: Message) -> Message | None:
    kind = content.get("type")
    if kind == "action":
        function = {"name": "action", "arguments": object_at(content, "action")}
        return {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"type": "function", "function": function}],
        }
    if kind == "observation":
        return {"role": "tool", "content": json.dumps(content.get("observation"), ensure_ascii=False)}
    if kind == "log":
        texts = content.get("content")
        return {
            "role": "assistant",
            "content": "\n".join(map(str, texts if isinstance(texts, list) else [texts])),
        }
    return None
