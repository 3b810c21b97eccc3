"""Who&When logs of failed runs of several agents: {"question", "history": [{role, name, content}], "mistake_step"}.

Every turn says who speaks (`name`, the speaker of its step); roles only say from whose side it was logged. The first
turn is the task as it was handed out; turns of who has no `system_prompt` are what the environment answered.
`is_correct`, `ground_truth` and the failure labels reveal the answer: they go to outcome, reference and metadata.
"""

from typing import Any

from apps.trajectories.formats.fields import read_success
from workers.schema import ObservationResult, Part, Step, Task, Trajectory, clean
from workers.schema.decode import optional_str, require_list, require_object
from workers.schema.messages import build_trajectory
from workers.schema.records import Source

SIGN = "an object with `history`, `mistake_agent` and `mistake_step`"
READ = ("/question_ID", "/is_correct", "/history/*/role")
_LABELS = ("is_correct", "mistake_agent", "mistake_step", "mistake_reason", "labels")
_KNOWN = (*_LABELS, "history", "question", "question_ID", "ground_truth")


def sniff(document: Any) -> bool:
    wanted = ("history", "mistake_agent", "mistake_step")
    return isinstance(document, dict) and all(key in document for key in wanted)


def read(document: Any) -> Trajectory:
    document, _ = clean(require_object(document))
    question = optional_str(document.get("question"), pointer="/question") or ""
    identity = optional_str(document.get("question_ID"), pointer="/question_ID") or ""
    agents = require_object(document.get("system_prompt") or {}, pointer="/system_prompt")
    success = read_success(document.get("is_correct"), pointer="/is_correct")
    failure_labels = {key: document[key] for key in _LABELS if key in document}
    return build_trajectory(
        tuple(
            _step(turn, index, agents)
            for index, turn in enumerate(require_list(document.get("history"), pointer="/history"))
        ),
        Task(
            id=identity,
            instruction=question,
            reference=optional_str(document.get("ground_truth"), pointer="/ground_truth"),
        ),
        pointer="/history",
        success=success,
        metadata={key: value for key, value in document.items() if key not in _KNOWN}
        | {"said": failure_labels},
    )


def _step(turn: Any, index: int, agents: dict[str, Any]) -> Step:
    at = f"/history/{index}"
    turn = require_object(turn, pointer=at)
    name = optional_str(turn.get("name"), pointer=f"{at}/name") or ""
    text = optional_str(turn.get("content"), pointer=f"{at}/content") or ""
    rest = {key: value for key, value in turn.items() if key not in ("name", "content")}
    extra = {"source_index": index} | rest
    parts = (Part(text=text),)
    source: Source = "user" if index == 0 else "agent" if not agents or name in agents else "environment"
    if source == "environment":
        result = ObservationResult(content=parts)
        return Step(source=source, speaker=name or None, observation=(result,), extra=extra)
    return Step(source=source, speaker=name or None, message=parts, extra=extra)
