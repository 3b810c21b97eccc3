"""What a judge says is distinguished from what people say: in every export, page, figure and filter of a dataset
version.

A judge says the opposite of what people say, of everything, so that wherever it was mixed in, it would show.
"""

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client, override_settings

from apps.accounts.models import Project, User
from apps.accounts.services import create_api_key
from apps.annotation import selectors as annotation
from apps.annotation.feedback.exports import EXPORTS
from apps.annotation.models import Annotation, Annotator, Assignment, Item
from apps.core.errors import DomainError
from apps.datasets.exports import EXPORTS as DATASET_EXPORTS
from apps.judges import services
from apps.judges.models import Judge, JudgeResult
from apps.llm.services import LLMConnectionSpec, create_llm_connection
from apps.metrics.selectors import list_comments
from tests.datasets.feedback import freeze
from tests.factories import make_member
from tests.judges import parcels
from tests.judges.parcels import COMPARED, SCORED, campaign
from workers.evaluate import Prediction
from workers.evaluate.annotators import annotator_report
from workers.schema import PreferenceRecord
from workers.schema.records import KIND_OF

pytestmark = [pytest.mark.ml, pytest.mark.django_db]
NAMES = {"judge:scores", "judge:compares"}


@pytest.fixture(scope="module")
def judged_rows(annotated_rows: Project) -> Project:
    """Both campaigns are judged, and handed in: once for all tests of this file."""
    with pytest.MonkeyPatch.context() as patch:  # as `quiet_hearts` of one test
        patch.setattr("apps.core.jobs.job_queue.heartbeat_seconds", lambda: 3600.0)
        _judge_all(annotated_rows)
    return annotated_rows


def _judge_all(project: Project) -> None:
    # No answer is asked for: all are put there.
    spec = LLMConnectionSpec(name="rules", base_url="http://127.0.0.1:9/v1", model="rules")
    with override_settings(OUTGOING_ALLOW=["127.0.0.0/8"]):
        rules = create_llm_connection(project=project, spec=spec, key="sk-canary", by=None)
    scores, compares = parcels.judge(rules, "scores"), parcels.judge(rules, "compares", mode="compare")
    for judge, name in ((scores, SCORED), (compares, COMPARED)):
        judge_run = services.start_judge_run(
            judge=judge, campaign=campaign(project, name), saves_annotations=True
        )
        for row in judge_run.results.select_related("item", "trajectory__task"):
            JudgeResult.objects.filter(pk=row.pk).update(state="done", answer=[_opposite(judge, row)])
        assert parcels.done(judge_run).state == "succeeded", judge_run.error
    assert set(_by_judges().values_list("assignment__annotator__name", flat=True)) == NAMES


@pytest.fixture
def project(judged_rows: Project, db: None) -> Project:
    return Project.objects.get(pk=judged_rows.pk)


@pytest.fixture
def judged(project: Project) -> Project:
    return project


def _opposite(judge: Judge, row: JudgeResult) -> dict[str, Any]:
    if judge.mode == "score":
        return {"value": 1.0, "spread": None, "reason": "Judge says it is bad.", "step": 1}
    one, two = parcels.failures(int(row.trajectory.task.external_id.removeprefix("task-")))
    chance = 0.0 if one < two else 1.0
    said = {"chance": chance, "first": chance, "second": chance, "spread": None}
    return said | {"reason": "Judge says so.", "step_a": 1, "step_b": None}


def _by_judges() -> Any:
    return Annotation.objects.filter(origin="judge")


def _lines(project: Project, format: str, **filters: Any) -> str:
    return "".join(EXPORTS[format](project=project, filters=filters))


OF_TRACES = ("langfuse-scores", "phoenix-annotations")  # see tests/annotation/feedback/test_trace_stores.py
WITHOUT_FEEDBACK = ("trl-prompts", "openrlhf-prompts")  # rows of tasks
OF_CORRECTIONS = ("trl-step-pairs", "trl-sft-revised", "openrlhf-step-pairs", "openrlhf-sft-revised")
# No one rated a trajectory or marked a step here: outcomes decide, and calls that failed.
OF_OUTCOMES = ("trl-sft", "openrlhf-sft", "axolotl-sft", "trl-failed-steps")
MARKED = {"jsonl": '"origin": "judge"', "csv": ",judge,", "atif": '"origin": "judge"', "otel": "judge"}


def test_no_export_of_feedback_is_forgotten_here() -> None:
    """Guidelines tell what metrics say, which are induced from people's comments: see the figures below."""
    assert set(EXPORTS) == {*MARKED, "guidelines", *OF_TRACES}


def test_in_every_export_of_feedback(judged: Project) -> None:
    for format, mark in MARKED.items():
        assert "judge" not in _lines(judged, format).lower(), format
        asked_for = _lines(judged, format, origins=["judge"])
        assert mark in asked_for and "judge:" in asked_for, format
        assert "ann" not in asked_for.replace("annot", ""), format
        both = _lines(judged, format, origins=["judge", "imported"])
        assert mark in both and "ann" in both, format


def test_in_lines_every_record_says_who_it_is_of(judged: Project) -> None:
    lines = [json.loads(line) for line in _lines(judged, "jsonl", origins=["judge", "imported"]).splitlines()]
    said = Counter((line["origin"], line["annotator"] in NAMES) for line in lines)
    assert set(said) == {("judge", True), ("imported", False)}
    assert said["judge", True] > 3 * parcels.TASKS, "scores, comparisons, and comments at steps"


def test_by_command_and_api(judged: Project, client: Client, capsys: pytest.CaptureFixture[str]) -> None:
    call_command("export_feedback", judged.slug)
    assert "judge:" not in capsys.readouterr().out
    call_command("export_feedback", judged.slug, "--origin", "judge")
    assert "ann" not in capsys.readouterr().out.replace("annot", "")
    _, secret = create_api_key(project=judged, scopes=["feedback:read"], by=None)
    head = {"Authorization": f"Bearer {secret}"}
    url = f"/api/v1/projects/{judged.slug}/feedback"

    def read(query: str = "") -> str:
        reply: Any = client.get(url + query, headers=head)
        return b"".join(reply.streaming_content).decode()

    assert "judge:" not in read() and "judge:" not in read("?kind=rubric")
    assert read("?origin=judge").count("judge:") == read("?origin=judge").count("\n") > 0
    assert client.get(url + "?origin=oracle", headers=head).status_code == 400


def test_read_back_they_are_a_judge_s_again(judged: Project) -> None:
    lines = _lines(judged, "jsonl", origins=["judge"])
    other = Project.objects.create(slug="other", name="Other")
    records: dict[str, list[dict[str, Any]]] = {}
    for line in map(json.loads, lines.splitlines()):
        kind = "pairs" if "choice" in line else "rubric" if "criterion" in line else "comments"
        records.setdefault(kind, []).append(line)
    assert set(records) == {"pairs", "rubric", "comments"}
    for kind, some in records.items():
        parcels.tell(other, kind, some)
    rows = Assignment.objects.filter(item__campaign__project=other)
    assert rows.exists() and not rows.exclude(state=Assignment.State.BY_JUDGE).exists()
    assert not Item.objects.filter(campaign__project=other).exclude(completed_count=0).exists()
    assert _lines(other, "jsonl") == ""


@pytest.fixture
def with_judges(judged: Project) -> Iterator[Any]:
    yield freeze(judged, "all", filters={"origins": ["imported", "judge"]})


def test_in_every_filter_of_a_dataset_version(judged: Project, with_judges: Any) -> None:
    def census(name: str, **filters: Any) -> set[str]:
        return set(freeze(judged, name, filters=filters).annotators)

    people = {"ann", "ben"}
    assert census("none") == people
    assert census("by-campaign", campaigns=[SCORED]) == people
    assert census("by-kind", kinds=["rubric", "comment"]) == people
    assert census("since", since="2020-01-01T00:00:00Z") == people
    assert census("adjudicated", adjudication="also") == people
    assert census("imported", origins=["imported"]) == people
    assert census("judges", origins=["judge"]) == NAMES
    assert census("by-name", annotators=["judge:scores"]) == {"judge:scores"}
    assert set(with_judges.annotators) == people | NAMES
    assert {name: one["origins"] for name, one in with_judges.annotators.items() if name in NAMES} == {
        name: ["judge"] for name in NAMES
    }
    with pytest.raises(DomainError, match="Unknown origin 'robot'"):
        census("wrong", origins=["robot"])


def test_a_model_is_never_measured_on_them(with_judges: Any) -> None:
    from apps.datasets.selectors import read_dataset_records

    def origins(split: str) -> Counter[str]:
        return Counter(
            record.origin
            for record in read_dataset_records(with_judges, split)
            if KIND_OF[type(record)] != "outcome"
        )  # type: ignore[union-attr]

    assert origins("train")["judge"] > 0 and origins("train")["imported"] > 0
    assert origins("test")["imported"] > 0 and origins("test")["judge"] == 0


def test_what_a_person_reaches_is_of_people() -> None:
    from tests.workers.conftest import said
    from workers.schema import Task, Trajectory

    a, b = (Trajectory(steps=(said("agent", word),), task=Task(id="t")) for word in ("well", "badly"))

    def by(name: str, choice: Any, origin: Any = "person") -> Prediction:
        record = PreferenceRecord(a=a, b=b, choice=choice, annotator=name, item="i", origin=origin)
        return Prediction(record, (1.0, 0.0), (5, 5), (1, 1))

    people = [by("ann", "a"), by("ben", "a")]
    assert annotator_report([*people, by("judge:x", "a", "judge")]) is None
    found = annotator_report([*people, by("cleo", "a"), by("judge:x", "b", "judge")])
    assert found is not None and found["leave_one_out"] == 1.0


def test_in_every_export_of_a_dataset_version(judged: Project, with_judges: Any) -> None:
    people = freeze(judged, "people")
    for format, export in DATASET_EXPORTS.items():
        rows = [json.loads(line) for line in export(with_judges, None, Counter())]
        if format in WITHOUT_FEEDBACK or format in OF_OUTCOMES:
            assert "judge" not in {row.get("origin") for row in rows}
            continue
        if format in ("trl-stepwise", "axolotl-dpo", *OF_CORRECTIONS):
            assert not rows, "no one marked steps, and no side is one message"
            continue
        without = [json.loads(line) for line in export(people, None, Counter())]
        if format == "trl-reflections":
            assert (_origins(rows, format), without) == ({"judge"}, []), "people wrote no comments here"
            continue
        assert _origins(rows, format) == {"imported", "judge"}, f"{format}: every line says whose it is"
        assert _origins(without, format) == {"imported"}, format


def _origins(rows: list[dict[str, Any]], format: str) -> set[Any]:
    return {row.get("origin") for row in rows if format != "jsonl" or "annotator" in row}


def test_in_figures_about_people(judged: Project, capsys: pytest.CaptureFixture[str]) -> None:
    call_command("agreement", judged.slug, "--json")
    said = capsys.readouterr().out
    assert "judge:" not in said
    found = json.loads(said)["kinds"]
    assert found["rubric"]["alpha"] == pytest.approx(1.0) and found["rubric"]["annotators"] == 2
    for name in (SCORED, COMPARED):
        people = annotation.annotator_activity(campaign(judged, name))
        assert not {person.name for person in people} & NAMES
        progress = annotation.campaign_progress(campaign(judged, name))
        assert (
            progress.annotations
            == Annotation.objects.filter(
                assignment__item__campaign=campaign(judged, name), assignment__state="submitted"
            ).count()
        )
    assert not list_comments(judged, None).exists(), "metrics are induced from what people wrote"


def test_on_every_page(judged: Project, client: Client, researcher: User) -> None:
    client.force_login(researcher)
    base = f"/p/{judged.slug}"

    def page(path: str) -> str:
        reply = client.get(f"{base}/{path}")
        assert reply.status_code == 200, path
        return reply.content.decode()

    marks = campaign(judged, SCORED)
    item = Item.objects.filter(campaign=marks).first()
    assert item is not None
    run = item.places.get().trajectory_id
    for quiet in ("campaigns/", f"campaigns/{marks.pk}/", f"campaigns/{marks.pk}/quality/", "metrics/"):
        assert "judge:" not in page(quiet), quiet
    shown = page(f"campaigns/judged/{item.pk}/")
    assert "judge:scores" in shown and '<span class="badge">Judge</span>' in shown
    assert "judge:scores (judge)" in page(f"trajectories/{run}/")
    frozen = freeze(judged, "all", filters={"origins": ["imported", "judge"]})
    told = page(f"datasets/{frozen.pk}/")
    assert "judge:scores" in told and '<td class="caption">judge</td>' in told
    assert "judge" in page("datasets/new/"), "the form says that judges have to be asked for"


def test_whoever_adjudicates_sees_who_is_a_judge(judged: Project, client: Client) -> None:
    reviewer = make_member(judged, "rev@example.org", "reviewer")
    client.force_login(reviewer)
    item = Item.objects.filter(campaign=campaign(judged, SCORED)).first()
    assert item is not None
    begun = client.post(f"/p/{judged.slug}/campaigns/judged/{item.pk}/adjudicate/", follow=True)
    shown = begun.content.decode()
    assert "judge:scores" in shown and '<span class="badge">Judge</span>' in shown


def test_annotators_do_not_see_them(judged: Project, client: Client, annotator: User) -> None:
    client.force_login(annotator)
    home = client.get(f"/p/{judged.slug}/campaigns/").content.decode()
    assert "judge:" not in home
    item = Item.objects.filter(campaign=campaign(judged, SCORED)).first()
    assert item is not None
    assert client.get(f"/p/{judged.slug}/campaigns/judged/{item.pk}/").status_code == 403


def test_a_judge_has_no_login() -> None:
    assert not Annotator.objects.filter(name__startswith="judge:", user__isnull=False).exists()
