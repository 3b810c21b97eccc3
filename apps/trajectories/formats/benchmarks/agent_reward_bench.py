"""AgentRewardBench's trajectories: {"goal", "benchmark", "agent", "model", "steps": [{"action", "reasoning", ...}]}.

Each of its steps holds what the agent saw and what it then did: here what is seen after an action is that action's
observation, and the first view comes before any. `screenshot_path` is taken from the same archive, where there is one.
`summary_info` holds the benchmark's own reward, which gives the label away: the outcome and the metadata take it.
"""

from typing import Any

from msgspec.structs import replace

from apps.trajectories.formats.benchmarks.browser import called, seen
from workers.schema import ObservationResult, Part, Step, Task, Trajectory, clean
from workers.schema.decode import finite, optional_str, require_list, require_object
from workers.schema.messages import build_trajectory

SIGN = "an object with `goal` and `steps` that have an `action`"
READ = ("/summary_info/cum_reward", "/steps/*/num")
_ABOUT = ("url", "open_pages_urls", "focused_element", "last_action_error")
_KNOWN = ("goal", "steps", "agent", "model", "logs")


def sniff(document: Any) -> bool:
    if not isinstance(document, dict) or "goal" not in document:
        return False
    steps = document.get("steps")
    if not isinstance(steps, list) or not steps or not isinstance(steps[0], dict):
        return False
    return "action" in steps[0] and not isinstance(
        steps[0].get("observation"), str
    )  # these are `action-steps`


def read(document: Any) -> Trajectory:
    document, _ = clean(require_object(document))
    goal = optional_str(document.get("goal"), pointer="/goal") or ""
    given = [
        require_object(step, pointer=f"/steps/{index}")
        for index, step in enumerate(require_list(document.get("steps"), pointer="/steps"))
    ]
    steps = [Step(source="user", message=(Part(text=goal),))] if goal else []
    for index, step in enumerate(given):
        view = _seen(step, index)
        if index:
            acted = steps.pop()
            steps.append(_with(acted, view))
        elif view.content:
            steps.append(Step(source="environment", observation=(view,), extra={"source_index": 0}))
        steps.append(_acted(step, index))
    summary = require_object(document.get("summary_info") or {}, pointer="/summary_info")
    reward = finite(summary.get("cum_reward"), pointer="/summary_info/cum_reward")
    return build_trajectory(
        tuple(steps),
        Task(id=_task(document), instruction=goal),
        pointer="/steps",
        agent=str(document.get("agent") or document.get("model") or ""),
        reward=reward,
        success=None if reward is None else reward >= 1,
        metadata={key: value for key, value in document.items() if key not in _KNOWN}
        | {"model": document.get("model")},
    )


def _acted(given: dict[str, Any], index: int) -> Step:
    reasoning = optional_str(given.get("reasoning"), pointer=f"/steps/{index}/reasoning")
    action = optional_str(given.get("action"), pointer=f"/steps/{index}/action")
    return Step(
        source="agent",
        message=(Part(text=reasoning),) if reasoning else (),
        tool_calls=(called(action),) if action and action.strip() else (),
        metrics=given["stats"] if isinstance(given.get("stats"), dict) else {},
        extra={"source_index": given.get("num", index)},
    )


def _seen(given: dict[str, Any], index: int) -> ObservationResult:
    at = f"/steps/{index}"
    tree = given.get("axtree_pruned") or given.get("axtree")
    picture = optional_str(given.get("screenshot_path"), pointer=f"{at}/screenshot_path") or ""
    about = {key: given[key] for key in _ABOUT if given.get(key)}
    return seen(optional_str(tree, pointer=f"{at}/axtree") or "", "" if picture == "None" else picture, about)


def _with(step: Step, view: ObservationResult) -> Step:
    return replace(step, observation=(view,)) if view.content or view.extra else step


def _task(document: dict[str, Any]) -> str:
    """The benchmark's own name for it, from the experiment's, which ends with it and a seed."""
    experiment = document.get("experiment")
    if isinstance(experiment, str) and "_on_" in experiment:
        return experiment.rpartition("_on_")[2].removesuffix(f"_{document.get('seed')}")
    return ""
