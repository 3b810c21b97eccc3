"""Lines that are submitted to GAIA: {"task_id", "model_answer", "reasoning_trace"}.

The trace is how the agent came to its answer, as one text: its reasoning. Runs that were logged step by step are better
imported as these logs; the question is not in the file unless someone put it there. Results of CAMEL's runs have the
calls of tools too, [{"func_name", "args", "result"}], and the answers as they were written as `history`
([{"role_name", "content"}]), with `ground_truth` and `score`.
"""

import json
from typing import Any, Literal

from apps.trajectories.formats.computer_use.screens import goal_step
from apps.trajectories.formats.fields import read_id
from apps.trajectories.formats.stated import model_name, stated_success
from workers.schema import ObservationResult, Part, Step, Task, ToolCall, Trajectory, clean
from workers.schema.decode import finite, optional_str, require_object
from workers.schema.messages import build_trajectory

SIGN = "an object with `task_id` and `model_answer`"
READ = ("/task_id", "/success", "/is_correct", "/correct", "/score", "/model_answer")
_ASKED = ("question", "Question")
_KNOWN = (
    "task_id",
    "model_answer",
    "reasoning_trace",
    "success",
    "is_correct",
    "correct",
    "score",
    "ground_truth",
    *_ASKED,
)
_CALLS, _HISTORY = "tool_calls", "history"


def sniff(document: Any) -> bool:
    return isinstance(document, dict) and "task_id" in document and "model_answer" in document


def read(document: Any) -> Trajectory:
    document, _ = clean(require_object(document))
    given = document.get("model_answer")
    answer = str(given) if isinstance(given, int | float) else optional_str(given, pointer="/model_answer")
    trace = document.get("reasoning_trace")
    reasoning = trace if isinstance(trace, str) else None
    known = _KNOWN if reasoning or not trace else tuple(key for key in _KNOWN if key != "reasoning_trace")
    question = next((document[key] for key in _ASKED if isinstance(document.get(key), str)), "")
    calls, history = _calls(document.get(_CALLS)), _history_steps(document.get(_HISTORY), answer)
    known = (*known, *([_CALLS] if calls else []), *([_HISTORY] if history else []))
    step = Step(source="agent", message=(Part(text=answer),) if answer else (), reasoning=reasoning or None)
    return build_trajectory(
        (*goal_step(question), *calls, *(history or (step,))),
        Task(
            id=read_id(document.get("task_id"), pointer="/task_id") or "",
            instruction=question,
            reference=truth if isinstance(truth := document.get("ground_truth"), str) else None,
        ),
        agent=model_name(document),
        reward=finite(document.get("score"), pointer="/score"),
        success=stated_success(document),
        metadata={key: value for key, value in document.items() if key not in known and value is not None},
    )


def _history_steps(value: Any, answer: str | None) -> tuple[Step, ...]:
    """The answers as the agent wrote them, where they hold the one that was submitted; none of anything else."""
    turns = value if isinstance(value, list) else []
    if not turns or not all(
        isinstance(turn, dict) and isinstance(turn.get("content"), str) for turn in turns
    ):
        return ()
    if not answer or answer not in turns[-1]["content"]:
        return ()
    return tuple(_turn(turn, index) for index, turn in enumerate(turns))


def _turn(turn: dict[str, Any], index: int) -> Step:
    rest = {key: item for key, item in turn.items() if key != "content" and item not in (None, "", [], {})}
    source: Literal["user", "agent"] = "user" if turn.get("role_name") == "User" else "agent"
    return Step(
        source=source,
        message=(Part(text=turn["content"]),) if turn["content"] else (),
        extra={"source_index": index} | ({"turn": rest} if rest else {}),
    )


def _calls(value: Any) -> tuple[Step, ...]:
    """A step for each call; none where the value is something else."""
    if not isinstance(value, list) or not all(
        isinstance(call, dict) and isinstance(call.get("func_name"), str) for call in value
    ):
        return ()
    return tuple(_call(call, index) for index, call in enumerate(value))


def _call(call: dict[str, Any], index: int) -> Step:
    arguments, result = call.get("args"), call.get("result")
    text = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
    made = ToolCall(
        name=call["func_name"],
        arguments=arguments
        if isinstance(arguments, dict | str)
        else json.dumps(arguments, ensure_ascii=False),
    )
    rest = {key: item for key, item in call.items() if key not in ("func_name", "args", "result")}
    return Step(
        source="agent",
        tool_calls=(made,),
        observation=() if result is None else (ObservationResult(content=(Part(text=text),)),),
        extra={"source_index": index} | ({"call": rest} if rest else {}),
    )
