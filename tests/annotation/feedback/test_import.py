import json
from io import BytesIO
from pathlib import Path

import pytest
from django.db import connection

from apps.accounts.models import AuditEvent, Project
from apps.annotation.agreement import agreement
from apps.annotation.feedback.exports import export_csv, export_jsonl
from apps.annotation.feedback.incoming import FeedbackResult
from apps.annotation.feedback.records import feedback_records
from apps.annotation.feedback.services import import_feedback
from apps.annotation.models import Annotation, Annotator, Campaign, Comment, Item, Preference
from apps.core.errors import DomainError
from apps.trajectories.models import Trajectory
from tests.annotation.feedback.test_readers import BYE, COMMENT, HI, OUTCOME, PAIR
from workers import schema

pytestmark = pytest.mark.django_db


@pytest.fixture
def project() -> Project:
    return Project.objects.create(slug="p", name="P")


def load(project: Project, *records: object, format: str = "pairs", **options: object) -> FeedbackResult:
    text = "\n".join(record if isinstance(record, str) else json.dumps(record) for record in records)
    return import_feedback(project=project, stream=BytesIO(text.encode()), format=format, by=None, **options)  # type: ignore[arg-type]


def said(project: Project) -> list[tuple[str, str, int]]:
    records = [
        record for record in feedback_records(project=project) if isinstance(record, schema.PreferenceRecord)
    ]
    return [(record.annotator, record.choice, record.strength) for record in records]


def test_a_pair_brings_its_trajectories_its_annotator_and_a_closed_campaign(project):
    assert load(project, PAIR) == FeedbackResult(created=1)
    assert Trajectory.objects.count() == 2
    assert Annotator.objects.get().name == "ann"
    campaign = Campaign.objects.get()
    assert (campaign.name, campaign.state, campaign.feedback_types) == (
        "Imported: pairs",
        "closed",
        ["pairwise"],
    )
    assert Annotation.objects.get().origin == "imported"
    assert said(project) == [("ann", "a", 3)]
    assert AuditEvent.objects.filter(project=project, verb="feedback.imported").exists()


def test_the_same_judgement_twice_is_a_duplicate_in_one_file_or_two(project):
    assert load(project, PAIR, PAIR) == FeedbackResult(created=1, duplicates=1)
    assert load(project, PAIR) == FeedbackResult(duplicates=1)
    assert Preference.objects.count() == 1


def test_another_choice_by_the_same_annotator_is_a_new_revision(project):
    load(project, PAIR, PAIR | {"choice": "b"})
    load(project, PAIR | {"choice": "tie", "strength": 1})
    assert list(Annotation.objects.order_by("revision").values_list("revision", flat=True)) == [1, 2, 3]
    assert said(project) == [("ann", "tie", 1)]


def test_another_annotator_or_criterion_judges_the_same_item(project):
    load(project, PAIR, PAIR | {"annotator": "bob", "choice": "b"}, PAIR | {"criterion": "polite"})
    item = Item.objects.get()
    assert (item.completed_count, item.claimed_count) == (2, 2)
    overall = [("ann", "a", 3), ("ann", "a", 3), ("bob", "b", 3)]
    assert sorted(said(project)) == overall
    criteria = {
        record.criterion
        for record in feedback_records(project=project)
        if isinstance(record, schema.PreferenceRecord)
    }
    assert criteria == {None, "polite"}


def test_a_mirrored_pair_is_the_same_item_and_its_choice_is_turned_round(project):
    load(project, PAIR)
    assert load(project, PAIR | {"a": BYE, "b": HI, "choice": "b"}) == FeedbackResult(duplicates=1)
    assert Item.objects.count() == 1


def test_a_named_item_is_about_its_trajectories_only(project):
    other = {"prompt": "Hi", "response": "What?"}
    result = load(project, PAIR | {"item": "1"}, PAIR | {"item": "2"}, PAIR | {"item": "1", "b": other})
    assert Item.objects.count() == 0
    assert result.rejected[0]["line"] == 3
    assert "has other trajectories" in result.rejected[0]["message"]


def test_trajectories_can_be_named_by_their_own_id(project):
    documents = [
        schema.to_atif(document) | {"session_id": name}
        for name, document in (("x", parse(HI)), ("y", parse(BYE)))
    ]
    load(
        project,
        *[{"trajectory": {"trajectory": document}, "success": True} for document in documents],
        format="outcomes",
    )
    pair = {"a": {"trajectory_id": "x"}, "b": {"trajectory_id": "y"}, "choice": "a", "annotator": "ann"}
    assert load(project, pair) == FeedbackResult(created=1)
    refused = load(project, pair | {"b": {"trajectory_id": "z"}})
    assert "has no trajectory 'z'" in refused.rejected[0]["message"]


def parse(item: dict) -> schema.Trajectory:
    content = schema.parse_item(item, task=schema.Task(id="t")).content
    assert isinstance(content, schema.Trajectory)
    return content


def test_outcomes_go_to_the_trajectory_and_comments_to_their_steps(project):
    assert load(project, OUTCOME, OUTCOME, format="outcomes") == FeedbackResult(created=1, duplicates=1)
    assert Trajectory.objects.get().success is True
    assert load(project, COMMENT, COMMENT, format="comments") == FeedbackResult(created=1, duplicates=1)
    comment = Comment.objects.get()
    assert (comment.text, comment.first_step, comment.last_step, comment.sign) == ("rude", 1, 1, -1)
    kinds = {schema.records.KIND_OF[type(record)] for record in feedback_records(project=project)}
    assert kinds == {"comment", "outcome"}


@pytest.mark.parametrize("keep_good", [False, True])
def test_one_bad_record_refuses_the_file_unless_the_good_are_kept(project, keep_good):
    records = [PAIR | {"annotator": f"a{n}"} for n in range(599)]
    lines = [json.dumps(record) for record in records]
    lines.insert(516, '{"task": ')
    result = load(project, *lines, keep_good=keep_good)
    assert [rejection["line"] for rejection in result.rejected] == [517]
    assert "not valid JSON" in result.rejected[0]["message"]
    assert result.created == Preference.objects.count() == (599 if keep_good else 0)
    assert Trajectory.objects.count() == (2 if keep_good else 0)


def test_an_unknown_format_names_the_known_ones(project):
    with pytest.raises(DomainError, match="allowed are pairs, rankings"):
        load(project, PAIR, format="stars")


def test_simulated_judgements_stay_marked(project):
    load(project, PAIR | {"origin": "simulated"})
    (record,) = [
        found for found in feedback_records(project=project) if isinstance(found, schema.PreferenceRecord)
    ]
    assert record.origin == "simulated"
    assert not list(feedback_records(project=project, filters={"origins": ["person"]}))


def test_filters(project):
    load(project, PAIR, campaign="one")
    load(project, PAIR | {"annotator": "bob"}, campaign="two")
    names = [record.annotator for record in feedback_records(project=project, filters={"campaigns": ["two"]})]  # type: ignore[union-attr]
    assert names == ["bob"]
    with pytest.raises(DomainError, match="Unknown filter 'color'"):
        list(feedback_records(project=project, filters={"color": 1}))
    with pytest.raises(DomainError, match="Unknown kind"):
        list(feedback_records(project=project, filters={"kinds": ["stars"]}))


def test_what_goes_out_as_jsonl_comes_back_as_duplicates_and_into_an_empty_project_whole(project):
    load(project, PAIR, PAIR | {"annotator": "bob", "item": "7"})
    load(project, COMMENT, format="comments", campaign="Imported: pairs")
    lines = list(export_jsonl(project=project, filters={}))
    assert len(lines) == 3
    other = Project.objects.create(slug="q", name="Q")
    for target, created in ((project, 0), (other, 1)):
        for format, kind, n in (("pairs", "pairwise", 2), ("comments", "comment", 1)):
            out = list(export_jsonl(project=project, filters={"kinds": [kind]}))
            result = load(target, *out, format=format)
            assert (result.created, result.duplicates, result.rejected) == (
                n * created,
                n * (1 - created),
                [],
            )
    assert [content(line) for line in export_jsonl(project=other, filters={})] == [
        content(line) for line in lines
    ]


def content(line: str) -> dict:
    """What was said, without which row it was and when."""
    record = json.loads(line)
    record.pop("made")
    for place in {"a", "b", "trajectory"} & record.keys():
        record[place]["trajectory"].pop("session_id")
        record[place]["trajectory"]["extra"].pop("__atif__")  # that it is none of the source's
    return record


def test_csv_has_a_row_a_judgement_and_no_formula_runs(project):
    load(project, COMMENT | {"text": "=1+1"}, format="comments")
    header, row = export_csv(project=project, filters={})
    assert header.startswith("\ufeffkind,task,item")
    assert "'=1+1" in row


def test_agreement_of_people_who_always_agree_and_of_one_alone(project):
    assert agreement(project=project) == {"kinds": {}}
    load(project, PAIR)
    assert agreement(project=project)["kinds"]["pairwise"]["alpha"] is None
    load(project, PAIR | {"annotator": "bob"})
    found = agreement(project=project)["kinds"]["pairwise"]
    assert (found["alpha"], found["items"], found["annotators"]) == (1.0, 1, 2)
    assert found["pairs"] == [{"a": "ann", "b": "bob", "kappa": None, "n": 1}]


def test_pandalm_gives_the_published_agreement(project, shared_data: Path):
    with (shared_data / "pandalm/testset-v1.json").open("rb") as stream:
        result = import_feedback(project=project, stream=stream, format="pandalm", by=None)
    assert (result.created, result.rejected) == (2997, [])
    found = agreement(project=project)["kinds"]["pairwise"]
    assert round(found["alpha"], 4) == 0.8642
    assert [round(pair["kappa"], 3) for pair in found["pairs"]] == [0.852, 0.879, 0.862]
    assert Item.objects.count() == 999
    assert Trajectory.objects.values("task").distinct().count() == 170
    with connection.cursor() as cursor:  # who reads it next is not planned for an empty table
        cursor.execute("SELECT reltuples FROM pg_class WHERE relname = 'annotation_annotation'")
        assert cursor.fetchone()[0] >= 2997


@pytest.mark.parametrize(
    ("format", "name", "created"),
    [
        pytest.param("hh", "hh_rlhf/harmless-base-first-1800.jsonl", 1800, marks=pytest.mark.slow),
        ("fine-grained-rlhf", "fine_grained_rlhf/qa_feedback_first_350.json", 2100 + 958),
    ],
)
def test_real_files_are_read_whole(project, shared_data: Path, format, name, created):
    with (shared_data / name).open("rb") as stream:
        result = import_feedback(project=project, stream=stream, format=format, by=None)
    assert (result.created, result.duplicates, result.rejected) == (created, 0, [])
    ties = sum(
        record.choice == "tie"
        for record in feedback_records(project=project, filters={"kinds": ["pairwise"]})
    )  # type: ignore[union-attr]
    assert ties == (0 if format == "hh" else 2100 - 1840)


def test_who_and_when_marks_the_turn_that_decided_it(project, shared_data: Path):
    paths = sorted(shared_data.glob("who_and_when/*/*.json"))
    stream = BytesIO(b"\n".join(path.read_bytes() for path in paths))
    result = import_feedback(project=project, stream=stream, format="who-and-when", by=None)
    assert (result.created, result.rejected) == (2 * 126, [])
    agents = dict[str, int]()
    documents = {
        document["question_ID"]: document for document in map(json.loads, (p.read_bytes() for p in paths))
    }
    for marked in feedback_records(project=project, filters={"kinds": ["step"]}):
        assert isinstance(marked, schema.StepLabelRecord) and marked.first_error is not None
        run = marked.trajectory
        step = run.steps[run.agent_steps[marked.first_error]]
        document = documents[run.task.id]
        wanted = int(document["mistake_step"])  # counted from 0
        of_agent = document["history"][wanted]["name"] in document["system_prompt"] and wanted > 0
        agents["as said" if of_agent else "beside it"] = (
            agents.get("as said" if of_agent else "beside it", 0) + 1
        )
        if of_agent:
            assert step.extra["source_index"] == wanted
    assert sum(agents.values()) == 126 and agents["as said"] > 100
    assert {trajectory.success for trajectory in Trajectory.objects.all()} == {False}


def test_agentrx_marks_messages_counted_from_one(project, shared_data: Path):
    folder = shared_data / "agentrx_tau"
    both = (folder / "tau_dataset_full.json").read_bytes() + (folder / "tau_ground_truth.json").read_bytes()
    refused = import_feedback(project=project, stream=BytesIO(both), format="agentrx", by=None)
    assert refused.created == 0 and len(refused.rejected) == 2
    assert "names the trajectory 104, which does not come before it" in refused.rejected[0]["message"]

    result = import_feedback(project=project, stream=BytesIO(both), format="agentrx", by=None, keep_good=True)
    truth = [
        record
        for record in json.loads((folder / "tau_ground_truth.json").read_bytes())
        if record["trajectory_id"] < 100
    ]
    runs = {
        record["task_id"]: record["traj"]
        for record in json.loads((folder / "tau_dataset_full.json").read_bytes())
    }
    failures = [
        (record["trajectory_id"], failure["step_number"] - 1)
        for record in truth
        for failure in record["failures"]
    ]
    of_agent = {(run, at) for run, at in failures if runs[run][at]["role"] == "assistant"}
    marked = [
        (
            int(record.trajectory.task.id),
            record.trajectory.steps[record.trajectory.agent_steps[place]].extra["source_index"],
        )
        for record in feedback_records(project=project, filters={"kinds": ["step"]})
        for place, label in record.labels.items()  # type: ignore[union-attr]
        if label == "bad"
    ]
    assert set(marked) == of_agent and len(marked) == len(of_agent)
    comments = Comment.objects.filter(annotation__assignment__item__campaign__project=project)
    assert comments.count() == len(failures) + len(truth)
    assert result.created == len({run for run, _ in of_agent}) + comments.count()


def test_agentrx_says_what_is_no_message_of_a_run(project, shared_data: Path):
    run = {
        "task_id": 1,
        "traj": [
            {"role": "user", "content": "Hi", "index": 1},
            {"role": "assistant", "content": "Hello", "index": 2},
        ],
    }
    failure = {"step_number": 3, "step_reason": "why", "failure_category": "what"}
    for number in (0, 3, "2", True, None):
        said = {"trajectory_id": 1, "failures": [failure | {"step_number": number}]}
        result = load(project, run, said, format="agentrx")
        (refused,) = result.rejected
        assert refused["pointer"] == "/failures/0/step_number" and "between 1 and 2" in refused["message"]
