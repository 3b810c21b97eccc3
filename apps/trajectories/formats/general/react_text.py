"""A run of ReAct that is one text: examples and a question, then `Thought 1: ... Action 1: ... Observation 1: ...`, in
`traj`, `trajectory`, `prompt` and other columns, as FireAct, KnowAgent and Reflexion log it, or is a file.

The run is what follows the last first thought; all before it is what was asked, examples included. What follows
`Observation:` is the environment's. Rows with an answer of a model next to the text are of `prompt-answer`.
"""

from typing import Any, NamedTuple

from msgspec.structs import replace

from apps.trajectories.formats.benchmarks.react import action_call
from apps.trajectories.formats.fields import read_id
from apps.trajectories.formats.general.prompt_answer import answer_name
from apps.trajectories.formats.general.row_names import REFERENCES, first_name
from apps.trajectories.formats.placed import storable
from apps.trajectories.formats.stated import model_name, run_facts, stated_success, stated_task_id
from apps.trajectories.formats.text_kind import TextKind
from workers.errors import InvalidRecord
from workers.schema import ObservationResult, Part, Step, Task, Trajectory, clean
from workers.schema.decode import finite, require_object
from workers.schema.messages import build_trajectory
from workers.schema.patterns import TextPattern

SIGN = "an object with a text such as `traj` or `prompt` that has `Thought:`, `Action:` and `Observation:`"
_TEXTS = ("traj", "trajectory", "scratchpad", "log", "transcript", "prompt", "text", "history")
_QUESTIONS = ("question", "query", "task", "goal", "instruction")
_MARK = TextPattern(r"(?m)^[ \t]*(ActionPath|Thought|Action|Act|Observation|Obs)(?: (\d{1,4}))?[ \t]*:[ \t]*")
LEFT_OUT = {"/traj_by_line": "the lines of `traj` once more"}
READ = ("/correct", "/em", "/success", "/reward", "/id", *(f"/{name}" for name in _TEXTS))


class _Section(NamedTuple):
    """kind: thought, action, observation or path. text: what follows its mark. raw: with the mark."""

    kind: str
    number: int | None
    text: str
    raw: str
    start: int


def sniff(document: Any) -> bool:
    return isinstance(document, dict) and bool(_text_name(document)) and not answer_name(document)


def _text_name(row: dict[str, Any]) -> str:
    return next((name for name in _TEXTS if isinstance(row.get(name), str) and _is_run(row[name])), "")


def _is_run(text: str) -> bool:
    kinds = {section.kind for section in _sections(text)}
    return {"action", "observation"} <= kinds


def _sections(text: str) -> list[_Section]:
    marks = list(_MARK.finditer(text))
    ends = [mark.start() for mark in marks[1:]] + [len(text)] * bool(marks)
    names = {"act": "action", "obs": "observation", "actionpath": "path"}
    return [
        _Section(
            names.get(mark[1].lower(), mark[1].lower()),
            int(mark[2]) if mark[2] else None,
            text[mark.end() : end].strip("\n"),
            text[mark.start() : end],
            mark.start(),
        )
        for mark, end in zip(marks, ends, strict=True)
    ]


def _run_of(text: str, question: str) -> list[_Section]:
    """The sections of the last run of a text, whose examples are runs too."""
    sections = _sections(text)
    firsts = [
        place for place, each in enumerate(sections) if each.number == 1 and each.kind in ("path", "thought")
    ]
    if firsts:
        first = firsts[-1]
        if first and sections[first - 1].number == 1 and sections[first - 1].kind == "path":
            first -= 1
        return sections[first:]
    asked = text.rfind(question) if question else -1
    return [each for each in sections if each.start > asked]


@storable
def read(document: Any) -> Trajectory:
    row, _ = clean(require_object(document))
    name, asked = _text_name(row), first_name(row, _QUESTIONS)
    if not name:
        raise InvalidRecord("has no text of thoughts, actions and observations.")
    question = row[asked] if asked and asked != name else ""
    sections = _run_of(row[name], question)
    if not sections:
        raise InvalidRecord("has no thought or action after the question.", pointer=f"/{name}")
    before = row[name][: sections[0].start].strip()
    steps = [Step(source="user", message=(Part(text=before),))] if before else []
    for section in sections:
        _add(steps, section)
    reference = next((each for each in REFERENCES if each != "answer" and first_name(row, (each,))), "")
    reward, right = row.get("reward"), row.get("em")
    success = stated_success(row)
    if success is None:
        success = next((value for value in (right, reward) if isinstance(value, bool)), None)
    model = model_name(row)
    known = (name, asked, reference, "reward", "id", "traj_by_line")
    return build_trajectory(
        tuple(steps),
        Task(id=stated_task_id(row), instruction=question, reference=row[reference] if reference else None),
        pointer=f"/{name}",
        id=read_id(row.get("id")),
        agent=model,
        reward=None if isinstance(reward, bool) else finite(reward, pointer="/reward"),
        success=success,
        metadata=run_facts(row, model=model)
        | {key: value for key, value in row.items() if key not in known and value is not None},
    )


def _add(steps: list[Step], section: _Section) -> None:
    last = steps[-1] if steps and steps[-1].source == "agent" else None
    if section.kind == "observation":
        result = ObservationResult(content=(Part(text=section.text),))
        if last is None:
            steps.append(Step(source="environment", observation=(result,)))
        else:
            steps[-1] = replace(last, observation=(*last.observation, result))
        return
    if last is None or last.observation or last.tool_calls or (section.kind == "thought" and last.message):
        last = Step(source="agent", extra={"text": ""})
        steps.append(last)
    kept = last.extra | {"text": last.extra["text"] + section.raw}
    if section.kind == "action":
        steps[-1] = replace(last, tool_calls=(action_call(section.text.strip()),), extra=kept)
    elif section.kind == "thought":
        steps[-1] = replace(last, message=(Part(text=section.text),), extra=kept)
    else:
        steps[-1] = replace(last, extra=kept | {"path": section.text})


def _begins(head: str) -> bool:
    return not head.lstrip().startswith(("{", "[", "<")) and _is_run(head)


RUN = TextKind("a run of ReAct", _begins, lambda line: False, lambda lines: {"text": "".join(lines)})
