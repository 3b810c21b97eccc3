"""Lines that are submitted to GAIA: {"task_id", "model_answer", "reasoning_trace"}.

The trace is how the agent came to its answer, as one text: its reasoning. Runs that were logged step by step are better
imported as these logs; the question is not in the file unless someone put it there.
"""

from typing import Any

from apps.trajectories.formats.computer_use.screens import goal_step
from apps.trajectories.formats.fields import read_id
from apps.trajectories.formats.stated import model_name, stated_success
from workers.schema import Part, Step, Task, Trajectory, clean
from workers.schema.decode import optional_str, require_object
from workers.schema.messages import build_trajectory

SIGN = "an object with `task_id` and `model_answer`"
READ = ("/task_id", "/success", "/is_correct", "/correct")
_ASKED = ("question", "Question")
_KNOWN = ("task_id", "model_answer", "reasoning_trace", "success", "is_correct", "correct", *_ASKED)


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
    step = Step(source="agent", message=(Part(text=answer),) if answer else (), reasoning=reasoning or None)
    return build_trajectory(
        (*goal_step(question), step),
        Task(id=read_id(document.get("task_id"), pointer="/task_id") or "", instruction=question),
        agent=model_name(document),
        success=stated_success(document),
        metadata={key: value for key, value in document.items() if key not in known and value is not None},
    )
