"""Every export can be imported: into the project it came from nothing is doubled, into another one nothing is lost."""

import io
import json
from collections import Counter
from typing import Any

import pytest
from django.test import Client

from apps.accounts.models import Project, Scope, User
from apps.annotation.feedback.exports import EXPORTS
from apps.annotation.feedback.records import feedback_records
from apps.annotation.feedback.services import import_feedback
from apps.annotation.models import Annotation, Annotator, Assignment, Item
from apps.datasets.exports import EXPORTS as DATASET_EXPORTS
from apps.trajectories.exports import export_lines
from apps.trajectories.models import Trajectory
from apps.trajectories.services import import_trajectories
from tests.annotation.feedback.test_api import bearer
from tests.annotation.feedback.test_kinds import EACH, HI, HMM, TASK
from tests.annotation.feedback.test_out import BOTH_BAD, COMMENT, PAIR, TIE
from tests.datasets.feedback import freeze
from workers.schema.records import KIND_OF, record_trajectories
from workers.schema.storage import to_builtins

PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5E"
    "rkJggg=="
)
CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at":  "it"}'}}
ASK = {
    "role": "user",
    "content": [{"type": "text", "text": "=What?"}, {"type": "image_url", "image_url": {"url": PIXEL}}],
}
LOOKED: dict[str, Any] = {
    "messages": [
        ASK,
        {"role": "assistant", "content": None, "reasoning_content": "Hm.", "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": '{"seen": 1}'},
        {"role": "assistant", "content": "A dot."},
    ],
}
GUESSED: dict[str, Any] = {"messages": [ASK, {"role": "assistant", "content": "A line."}]}
SEEN = {
    "task": {"id": "see", "instruction": "'=look"},
    "a": LOOKED,
    "b": GUESSED,
    "choice": "a",
    "strength": 3,
}
FORMULA = '＝SUM(1)\n"quoted", and more'
RECORDS: list[tuple[str, dict[str, Any]]] = [
    *EACH,
    ("pairs", PAIR),
    ("pairs", TIE),
    ("pairs", BOTH_BAD),
    ("pairs", SEEN | {"annotator": "ann", "item": "named: 7"}),
    ("comments", COMMENT),
    ("comments", COMMENT | {"text": FORMULA, "anchor": {"steps": [1, 1], "quote": "Hi", "chars": [0, 2]}}),
    ("comments", {"task": TASK, "trajectory": HMM, "text": "\nline", "annotator": "=ben"}),
    ("steps", {"task": TASK, "trajectory": HI, "labels": {"0": "good", "1": "neutral"}, "annotator": "ben"}),
]  # fmt: skip


def load(project: Project, format: str, data: bytes | str, campaign: str | None = None) -> tuple[int, int]:
    raw = data.encode() if isinstance(data, str) else data
    result = import_feedback(
        project=project, stream=io.BytesIO(raw), format=format, by=None, campaign=campaign
    )
    assert result.rejected == []
    return result.created, result.duplicates


@pytest.fixture
def judged(project: Project, annotator: User) -> Project:
    """Feedback of all kinds by `ann`, who has an account here, and by `ben` and `=ben`, who have none."""
    for format, record in RECORDS:
        assert load(project, format, json.dumps(record), campaign="First") == (1, 0)
    Annotator.objects.filter(project=project, name="ann").update(user=annotator)
    return project


def state(project: Project) -> dict[str, Any]:
    """What is stored: rows, and what the people gave."""
    of = {"assignment__item__campaign__project": project}
    return {
        "trajectories": Trajectory.objects.filter(project=project).count(),
        "items": Item.objects.filter(campaign__project=project).count(),
        "people": Counter(Annotator.objects.filter(project=project).values_list("name", flat=True)),
        "assignments": Assignment.objects.filter(item__campaign__project=project).count(),
        "revisions": Annotation.objects.filter(**of).count(),
        "given": given(project),
    }


def given(project: Project, *kinds: str) -> list[str]:
    """Every record by what it says and of what, without ids of rows and origins."""
    lines = []
    for record in feedback_records(project=project, filters={"adjudication": "also"}):
        kind = KIND_OF[type(record)]
        if kind == "outcome" or (kinds and kind not in kinds):
            continue
        values = to_builtins(record) | {"origin": None, "item": None}
        contents = [trajectory.content_hash for trajectory in record_trajectories(record)]
        values |= dict.fromkeys(("a", "b", "trajectory", "trajectories"))
        lines.append(json.dumps([kind, contents, values], sort_keys=True))
    return sorted(lines)


def test_what_was_got_and_is_posted_again_doubles_nothing(judged: Project, client: Client) -> None:
    headers = bearer(judged, Scope.FEEDBACK_READ, Scope.FEEDBACK_WRITE)
    url, before = "/api/v1/projects/desk/feedback", state(judged)
    lines = b"".join(client.get(url, headers=headers).streaming_content)  # type: ignore[attr-defined]
    answer = client.post(url, lines, content_type="application/x-ndjson", headers=headers)
    assert answer.json()["kept"][0]["path"].endswith("/extra/source_index")
    counts = {"created": 0, "duplicates": len(RECORDS), "rejected": [], "dropped": []}
    assert answer.json() | counts == answer.json()
    assert state(judged) == before


def test_what_another_gives_under_the_name_of_an_account_is_not_theirs(judged: Project) -> None:
    """Only a record that was exported, unchanged, is taken for what the person with an account gave."""
    changed = [
        line.replace('"Too short."', '"Too long."') for line in EXPORTS["jsonl"](project=judged, filters={})
    ]
    assert load(judged, "jsonl", "".join(changed)) == (1, len(RECORDS) - 1)
    by_account = Annotation.objects.filter(assignment__annotator__user__isnull=False)
    assert not by_account.filter(comments__text="Too long.").exists()
    assert Annotator.objects.filter(name="ann", user=None).count() == 1


@pytest.mark.parametrize("format", ["jsonl", "csv", "atif", "otel"])
def test_feedback_exports_come_back(judged: Project, format: str) -> None:
    before = state(judged)
    out = "".join(EXPORTS[format](project=judged, filters={}))
    assert load(judged, format, out) == (0, len(RECORDS))
    assert state(judged) == before

    other = Project.objects.create(slug="other", name="Other")
    if format in ("csv", "otel"):  # have no trajectories
        with pytest.raises(AssertionError, match="which this project does not have; import the trajectories"):
            load(other, format, out)
        documents = b"".join(export_lines(judged, Trajectory.objects.filter(project=judged), format="atif"))
        import_trajectories(project=other, stream=io.BytesIO(documents), by=None)
    assert load(other, format, out) == (len(RECORDS), 0)
    first = state(other)
    assert first["given"] == before["given"]
    assert (first["items"], first["people"]) == (before["items"], before["people"])
    assert load(other, format, out) == (0, len(RECORDS))
    assert state(other) == first


def test_a_table_that_a_spreadsheet_saved_again(judged: Project) -> None:
    """With semicolons, without the mark at the beginning, TRUE in capitals."""
    import csv

    out = "".join(EXPORTS["csv"](project=judged, filters={}))
    assert out.startswith("\ufeffkind,task,")
    rows = list(csv.reader(io.StringIO(out.removeprefix("\ufeff"), newline="")))
    assert len(rows) == len(RECORDS) + 1
    cells = [cell for row in rows for cell in row]
    assert not [cell for cell in cells if cell.startswith(("=", "＝", "\n", "@"))]
    assert '\'＝SUM(1)\n"quoted", and more' in cells and "'\nline" in cells and "''=look" in cells
    table = io.StringIO(newline="")
    csv.writer(table, delimiter=";").writerows(
        [["TRUE" if cell == "True" else cell for cell in row] for row in rows]
    )
    assert load(judged, "csv", table.getvalue()) == (0, len(RECORDS))


@pytest.mark.parametrize(
    ("format", "kinds", "count", "incomplete"),
    [
        ("trl", ("pairwise",), 2, 0),
        ("openrlhf", ("pairwise",), 2, 0),
        ("rewardbench", ("pairwise",), 2, 0),
        ("trl-unpaired", ("pairwise", "rating"), 5, 0),
        ("trl-stepwise", ("step",), 4, 2),  # one has tags of a taxonomy
    ],
)
def test_dataset_exports_come_back(
    judged: Project, format: str, kinds: tuple[str, ...], count: int, incomplete: int
) -> None:
    """incomplete: rows that end before steps that were labelled, and so say too little for another project."""
    before = state(judged)
    lines = list(DATASET_EXPORTS[format](freeze(judged), None, Counter()))
    assert load(judged, format, "".join(lines)) == (0, count)
    assert state(judged) == before

    other = Project.objects.create(slug="other", name="Other")
    stream = io.BytesIO("".join(reversed(lines)).encode())
    result = import_feedback(project=other, stream=stream, format=format, by=None, keep_good=True)
    assert (result.created, result.duplicates) == (count - incomplete, 0)
    lacking = ("which this project does not have", "is not in the trajectory")
    assert [any(words in each["message"] for words in lacking) for each in result.rejected] == [
        True
    ] * incomplete
    first = state(other)
    assert first["people"].keys() <= before["people"].keys()
    said = [json.loads(line)[2] for line in first["given"]]
    expected = [json.loads(line)[2] for line in given(judged, *kinds)]
    assert len(said) == count - incomplete and all(record in expected for record in said)
    again = import_feedback(
        project=other, stream=io.BytesIO("".join(lines).encode()), format=format, by=None, keep_good=True
    )
    # A trajectory that another row brought whole is known by its content now.
    assert (again.created, again.duplicates) == (incomplete, count - incomplete)
    first = state(other)
    assert load(other, format, "".join(lines)) == (0, count)
    assert state(other) == first


def test_rows_of_other_trainers_data(project: Project) -> None:
    ask = {"role": "user", "content": "Hi"}
    yes, no = ({"role": "assistant", "content": text} for text in ("Yes", "No"))
    rows: dict[str, list[dict[str, Any]]] = {
        "trl": [
            {"prompt": "Hi", "chosen": "Yes", "rejected": "No"},
            {"prompt": [ask], "chosen": [yes], "rejected": [no]},
            {"chosen": [ask, no], "rejected": [ask, yes], "margin": 1.0},
        ],
        "openrlhf": [{"chosen": [ask, yes], "rejected": [ask, no]}],
        "trl-unpaired": [{"prompt": "Hi", "completion": "Yes", "label": True}],
        "trl-stepwise": [{"prompt": "Add.", "completions": ["1", "2"], "labels": [True, False]}],
    }
    for format, lines in rows.items():
        created, duplicates = load(project, format, "\n".join(map(json.dumps, lines)))
        assert created + duplicates == len(lines) and created
    pairs = [
        record
        for record in map(to_builtins, feedback_records(project=project, filters={"kinds": ["pairwise"]}))
        if record["annotator"] == "trl"
    ]
    # The first two rows are one comparison, which the third gives again, and the other way round.
    assert [(record["choice"], record["strength"]) for record in pairs] == [("b", 3)]
    (steps,) = map(to_builtins, feedback_records(project=project, filters={"kinds": ["step"]}))
    assert steps["labels"] == {"0": "good", "1": "bad"}


@pytest.mark.parametrize("format", ["atif", "openai"])
def test_trajectory_exports_come_back(judged: Project, format: str) -> None:
    before = state(judged)
    out = b"".join(export_lines(judged, Trajectory.objects.filter(project=judged), format=format))
    result = import_trajectories(project=judged, stream=io.BytesIO(out), by=None)
    assert (result.created, result.duplicates) == (0, before["trajectories"])
    assert state(judged) == before
