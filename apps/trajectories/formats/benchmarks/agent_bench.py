"""AgentBench's `runs.jsonl`: {"index", "error", "output": {"index", "status", "result", "history": [{role, content}]}}.

The agent's role is `agent`, all others are the environment. `result` is what the task's own check says: its `result`,
`success` or `is_correct` if true or false, its `reward` or `score` if a number.
"""

from typing import Any

from apps.trajectories.formats.benchmarks.react import asked, in_words
from apps.trajectories.formats.fields import read_id
from workers.errors import InvalidRecord
from workers.schema import Task, Trajectory, clean, from_messages
from workers.schema.decode import optional_str, require_object
from workers.schema.messages import build_trajectory

SIGN = "an object with `index` and an `output` that has a `history`"
READ = ("/index", "/output/result", "/output/history/*/role")
_SUCCESS, _REWARD = ("result", "success", "is_correct"), ("reward", "score")


def sniff(document: Any) -> bool:
    output = document.get("output") if isinstance(document, dict) else None
    return isinstance(output, dict) and "index" in document and ("history" in output or "status" in output)


def read(document: Any) -> Trajectory:
    document, _ = clean(require_object(document))
    output = require_object(document.get("output"), pointer="/output")
    if not output.get("history"):
        error = document.get("error") or output.get("status")
        raise InvalidRecord(
            f"has no history: the run ended before the agent said anything ({error}).", pointer="/output"
        )
    steps = in_words(from_messages(output["history"], pointer="/output/history"))
    result = output.get("result")
    holder = result if isinstance(result, dict) else {"result": result}
    success = next((holder[key] for key in _SUCCESS if isinstance(holder.get(key), bool)), None)
    numbers = (holder.get(key) for key in _REWARD)
    reward = next((n for n in numbers if isinstance(n, int | float) and not isinstance(n, bool)), None)
    around = {
        key: value for key, value in document.items() if key not in ("index", "output") and value is not None
    }
    rest = {key: value for key, value in output.items() if key != "history" and value is not None}
    return build_trajectory(
        steps,
        Task(id=read_id(document.get("index"), pointer="/index") or "", instruction=asked(steps)),
        pointer="/output/history",
        agent=optional_str(document.get("agent") if isinstance(document.get("agent"), str) else None) or "",
        reward=reward,
        success=success if success is not None or reward is None else reward >= 1,
        metadata=around | {"output": rest},
    )
