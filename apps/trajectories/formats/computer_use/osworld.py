"""OSWorld's `traj.jsonl` (lib_run_single.py): a line an action, {"step_num", "action_timestamp", "action", "response",
"reward", "done", "info", "screenshot_file"}, the screenshot being the one after the action.

One response of the model may hold several actions, each a line with the same `step_num`: one agent step. In an archive
of results (`DOMAIN/TASK/traj.jsonl`) the score in `result.txt`, the configuration of the task (`evaluation_examples`)
and `args.json` of the run are put next to the lines. OSWorld gives 0 as the reward of every action, which is none: only
where an action has another reward are those the steps' own. `evaluator` of a task says what is checked: metadata only.
"""

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from msgspec.structs import replace

from apps.trajectories.formats.archive import SCORE
from apps.trajectories.formats.benchmarks.browser import seen
from apps.trajectories.formats.computer_use.screens import call_of, picture_source, response_step
from apps.trajectories.formats.event_log import event_log
from apps.trajectories.formats.record import Record, encoded
from apps.trajectories.formats.stated import model_name
from workers.errors import InvalidRecord
from workers.schema import ObservationResult, Part, Step, Task, Trajectory, clean
from workers.schema.decode import finite, optional_str, require_list, require_object
from workers.schema.messages import build_trajectory

SIGN = "JSON lines with `step_num` and `action`, and `screenshot_file`, `action_timestamp` or `done`"
READ = (
    *("/*/step_num", "/*/reward", "/*/done", "/events/*/step_num", "/events/*/reward", "/events/*/done"),
    *("/result", "/task/id", "/folder"),
)
_LINE = ("screenshot_file", "action_timestamp", "done")
_READ_OF_LINE = ("action", "response", "reward", "screenshot_file", "Error")
_OBSERVATIONS = ("screenshot", "a11y_tree", "screenshot_a11y_tree", "som")
_NO_RUN = "is the {} of OSWorld, not a run: send the folder of the run with its traj.jsonl, as a zip archive."
_UNUSED = "no run of the archive is of this task"


def sniff(document: Any) -> bool:
    if isinstance(document, list):
        return bool(document) and _is_line(document[0])
    return _is_line(document) or _is_started(document) or bool(_about(document)) or _is_put_together(document)


def _is_line(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and "action" in value
        and "step_num" in value
        and any(key in value for key in _LINE)
    )


def _is_started(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() == {"instruction", "initial_state"}


def _is_put_together(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("events"), list)
        and "folder" in value
        and sniff(value["events"])
    )


def _about(value: Any) -> str:
    """What a document of an archive is that is no run."""
    if not isinstance(value, dict):
        return ""
    if value.keys() == {SCORE}:
        return "result"
    if "evaluator" in value and "instruction" in value and "snapshot" in value:
        return "task"
    return (
        "arguments"
        if "action_space" in value and "observation_type" in value and "step_num" not in value
        else ""
    )


class OSWorldRuns:
    """Puts the lines of each file together with what other files of the archive say of that run."""

    def __init__(self, limit: int) -> None:
        self._lines = event_log(whole=_is_put_together)(limit)
        self._about: list[tuple[str, Record]] = []
        self._places: dict[
            tuple[str, str], list[int]
        ] = {}  # in `_about`, by kind and folder, or name of the task

    def add(self, record: Record) -> None:
        kind = "" if record.error is not None else _about(record.document)
        if not kind:
            self._lines.add(record)
            return
        at = PurePosixPath(record.source)
        names = {str(at.parent)}
        if kind == "task":
            names |= {at.stem, str(record.document.get("id"))}
        for name in names:
            self._places.setdefault((kind, name), []).append(len(self._about))
        self._about.append((kind, record))

    def ready(self, source: str) -> Iterator[Record]:
        return iter(())  # the score of a run and its task may lie in any file

    def records(self) -> Iterator[Record]:
        used: set[int] = set()
        count = 0
        for record in self._lines.records():
            count += 1
            found = {} if record.error is not None else self._found(record.source, used)
            if (
                isinstance(record.document, dict)
                or (not found and not record.source)
                or record.error is not None
            ):
                yield record
            else:
                folder = PurePosixPath(record.source).parent.name
                document = {"events": record.document, "folder": folder} | _of_path(record.source) | found
                yield Record(record.line, encoded(document), document, source=record.source)
        for index, (kind, record) in enumerate(self._about):
            if not count:
                error = InvalidRecord(_NO_RUN.format({"task": "configuration of a task"}.get(kind, kind)))
                yield Record(record.line, pointer=record.pointer, error=error)
            elif index not in used:
                yield Record(record.line, pointer=record.pointer, skipped=_UNUSED)

    def _found(self, source: str, used: set[int]) -> dict[str, Any]:
        folder = PurePosixPath(source).parent
        looked_for = [("result", str(folder)), ("task", str(folder)), ("task", folder.name)]
        looked_for += [("arguments", str(each)) for each in (folder, *folder.parents)]
        found: dict[str, Any] = {}
        for index in sorted({index for each in looked_for for index in self._places.get(each, ())}):
            kind, record = self._about[index]
            found[kind] = record.document[SCORE] if kind == "result" else record.document
            used.add(index)
        return found


Gathered = OSWorldRuns


def _of_path(source: str) -> dict[str, Any]:
    """What the path of a run says of it: ACTION_SPACE/OBSERVATION_TYPE/MODEL/DOMAIN/TASK/traj.jsonl."""
    parts = PurePosixPath(source).parts[:-3]
    if len(parts) < 3 or parts[-2] not in _OBSERVATIONS:
        return {}
    return {"arguments": dict(zip(("action_space", "observation_type", "model"), parts[-3:], strict=True))}


def read(document: Any) -> Trajectory:
    document, _ = clean(document)
    around = {"events": document} if isinstance(document, list) else require_object(document)
    at = "" if isinstance(document, list) else "/events"
    events = require_list(around.get("events"), pointer=at)
    lines = [require_object(event, pointer=f"{at}/{index}") for index, event in enumerate(events)]
    task = require_object(around.get("task") or {}, pointer="/task")
    run = require_object(around.get("arguments") or {}, pointer="/arguments")
    instruction = task.get("instruction") or next(
        (line["instruction"] for line in lines if line.get("instruction")), ""
    )
    instruction = optional_str(instruction, pointer="/task/instruction") or ""
    rewards = [finite(line.get("reward"), pointer=f"{at}/{index}/reward") for index, line in enumerate(lines)]
    reward = finite(around.get("result"), pointer="/result")
    if reward is None and any(rewards):
        reward = next(value for value in reversed(rewards) if value is not None)
    identity = optional_str(task.get("id"), pointer="/task/id") or optional_str(
        around.get("folder"), pointer="/folder"
    )
    return build_trajectory(
        tuple(_steps(lines, instruction, at, rewards if any(rewards) else [None] * len(lines))),
        Task(id=identity or "", instruction=instruction, metadata=_without(task, ("id", "instruction"))),
        pointer=at,
        agent=model_name(run) or str(run.get("agent_name") or ""),
        reward=reward,
        success=None if reward is None else reward >= 1,
        metadata={"arguments": run, "model": model_name(run)} if run else {},
    )


def _steps(lines: list[dict[str, Any]], instruction: str, at: str, rewards: list[float | None]) -> list[Step]:
    steps = [Step(source="user", message=(Part(text=instruction),))] if instruction else []
    open_line: dict[str, Any] | None = None
    for index, line in enumerate(lines):
        where = f"{at}/{index}"
        view = _view(line, where)
        if "action" not in line:
            steps.append(_other(line, view, index))
            open_line = None
            continue
        goes_on = open_line is not None and all(
            open_line.get(k) == line.get(k) for k in ("step_num", "response")
        )
        if not goes_on:
            steps.append(response_step(line.get("response"), index, pointer=f"{where}/response"))
        steps[-1] = _acted(steps[-1], line, view, rewards[index], where)
        open_line = line
    return steps


def _acted(
    step: Step, line: dict[str, Any], view: ObservationResult, reward: float | None, where: str
) -> Step:
    given = line["action"]
    calls = [call for action in (given if isinstance(given, list) else [given]) if (call := call_of(action))]
    known = {call.id for call in step.tool_calls if call.id}
    added = tuple(call for call in calls if call.id is None or call.id not in known)
    if calls and not added:  # the response has the call already
        view = replace(view, call_id=calls[-1].id)
    elif len(added) == 1:
        view = replace(view, call_id=added[0].id)
    observed = (*step.observation, view) if view.content or view.extra else step.observation
    rewards = [value for value in (step.reward, reward) if value is not None]
    usage = line.get("model_usage")
    return replace(
        step,
        tool_calls=(*step.tool_calls, *added),
        observation=observed,
        reward=sum(rewards) if rewards else None,
        metrics=usage if isinstance(usage, dict) and not step.metrics else step.metrics,
        extra=step.extra | {"step_num": line.get("step_num")},
    )


def _view(line: dict[str, Any], where: str) -> ObservationResult:
    """The screen after an action, with what the environment says of it."""
    name = line.get("screenshot_file") or line.get("initial_state")
    picture = picture_source(optional_str(name, pointer=f"{where}/screenshot_file"))
    rest = _without(line, (*_READ_OF_LINE, "step_num", "instruction", "initial_state", "model_usage", "done"))
    rest = {key: value for key, value in rest.items() if value not in (None, "", [], {})}
    return seen("", picture, rest | ({"done": True} if line.get("done") is True else {}))


def _other(line: dict[str, Any], view: ObservationResult, index: int) -> Step:
    """A line without an action: how the run began, or that it was ended."""
    text = line.get("Error")
    parts = (Part(text=text), *view.content) if isinstance(text, str) else view.content
    return Step(
        source="environment", observation=(replace(view, content=parts),), extra={"source_index": index}
    )


def _without(given: dict[str, Any], known: tuple[str, ...]) -> dict[str, Any]:
    return {key: value for key, value in given.items() if key not in known}
