"""After an erasure, no byte of a person's words is in the database or in a file that was made from them."""

import json
from pathlib import Path
from typing import Any

import pytest

from apps.accounts import leaving
from apps.accounts.models import Project, Role, User
from apps.annotation import services as annotation
from apps.annotation.models import Annotation, Annotator, Assignment, Comment, CriterionScore, StepLabelSet
from apps.core.jobs.job_queue import claim_next
from apps.datasets.erasure import erase_judgements, plan_erasure
from apps.datasets.export_jobs import export_feedback
from apps.datasets.tasks import advance_exports
from apps.llm.models import CachedCompletion, LLMConnection
from apps.metrics.models import Metric, MetricVerdict
from apps.metrics.services import accept_metric, start_induction
from apps.metrics.tasks import advance_inductions
from apps.rubrics.models import Criterion
from apps.training import runner, services
from apps.training.models import Evaluation, RewardModel, TrainingRun
from apps.training.selectors import run_folder
from tests.annotation import rows
from tests.datasets.feedback import freeze, import_pairs, pair
from tests.erased import database_places, file_places
from tests.factories import make_member
from tests.metrics.said import comments, import_comments

pytestmark = pytest.mark.usefixtures("own_home", "fake_child")
EMAIL, NAME = "zyxperson@example.org", "Zyxname Quorn"
WORDS = (
    "zyxcomment", "zyxtone", "zyxquote", "zyxnote", "zyxedit", "zyxdraft", "zyxskip", "zyxpoint",
)  # fmt: skip


@pytest.fixture
def person(project: Project, monkeypatch: pytest.MonkeyPatch) -> User:
    """Someone with an account and imported feedback under their address, whose words went everywhere."""
    monkeypatch.setattr(runner, "CHILD", "tests.training.fake_child")
    monkeypatch.setattr(runner, "TICK", 0.02)
    user = make_member(project, EMAIL, "annotator")
    User.objects.filter(pk=user.pk).update(name=NAME)
    given = comments(4)
    theirs = [line | {"annotator": EMAIL} for line in given[:2]]
    theirs[0]["text"], theirs[1]["text"] = "Zyxcomment: the order was looked up too late.", "Zyxtone."
    import_comments(project, [*theirs, *given[2:]])
    import_pairs(project, [pair(f"t{n}", annotator=name) for n in range(4) for name in ("ann", EMAIL)])
    _annotate(project, user)
    return user


def _annotate(project: Project, user: User) -> None:
    campaign = annotation.create_campaign(project=project, name="Own", feedback_types=["pairwise"])
    for name in ("one", "two"):
        rows.pair(campaign, name)
    done = rows.submit(rows.leased(campaign, user), user)
    trajectory = done.assignment.item.trajectories.first()
    about: dict[str, Any] = {"annotation": done, "trajectory": trajectory}
    Comment.objects.create(
        text="Zyxcomment again.", quote="zyxquote", sign=1, first_step=1, last_step=1, **about
    )
    criterion = Criterion.objects.create(project=project, name="care")
    CriterionScore.objects.create(criterion=criterion, value=3, low=1, high=5, note="zyxnote", **about)
    StepLabelSet.objects.create(labels={"0": "bad"}, corrections={"0": "zyxedit"}, **about)
    held = rows.leased(campaign, user)
    Assignment.objects.filter(pk=held.pk).update(draft={"note": "zyxdraft"}, reason="zyxskip")


def _use_everywhere(project: Project) -> RewardModel:
    """Metrics, an accepted criterion, cached completions, a dataset with derived labels, a run, a report, an export."""
    induction = start_induction(project=project)
    advance_inductions()
    metrics = list(Metric.objects.filter(induction=induction))
    Metric.objects.filter(pk=metrics[1].pk).update(
        name="zyxtone, polite", definition="As in “Zyxtone.”, say."
    )
    researcher = make_member(project, "accepts@example.org", Role.RESEARCHER)
    for metric in Metric.objects.filter(induction=induction):
        accept_metric(metric=metric, by=researcher)
    MetricVerdict.objects.filter(metric=metrics[0]).update(
        reason="It says: Zyxcomment: the order was looked up too late."
    )
    connection = LLMConnection.objects.create(project=project, name="m", folder="m")
    comment = Comment.objects.filter(text__startswith="Zyxcomment").first()
    assert comment is not None
    about = {"llm_connection": connection, "answer": {"points": ["zyxpoint"]}}
    CachedCompletion.objects.create(key="a" * 64, comment=comment, **about)
    quoted = {"reason": f"They wrote {comment.text}"}
    CachedCompletion.objects.create(
        key="b" * 64, trajectory=comment.trajectory, llm_connection=connection, answer=quoted
    )
    version = freeze(project, derived=["metric_scores", "comment_steps"])
    export_feedback(
        project=project, format="jsonl", filters={}, by=make_member(project, "r@example.org", "researcher")
    )
    advance_exports()
    services.start_run(
        project=project, dataset_version=version, recipe={"label_smoothing": 0.0}, name="polite", by=None
    )
    run = claim_next(TrainingRun)
    assert run is not None
    runner.execute(run)
    report = {"mistakes": [{"annotator": EMAIL}], "reliabilities": {EMAIL: 0.9, "ann": 0.8}}
    (run_folder(run) / "report.json").write_text(json.dumps(report))
    TrainingRun.objects.filter(pk=run.pk).update(report=report)
    model = RewardModel.objects.get()
    Evaluation.objects.create(model=model, dataset_version=version, source="test", report=report)
    return model


def test_no_byte_of_erased_words_is_left(
    project: Project, person: User, tmp_path: Path, django_capture_on_commit_callbacks: Any
) -> None:
    model = _use_everywhere(project)
    assert {place.split(": ")[1] for place in database_places(*WORDS)} == set(WORDS)
    assert {place.split(": ")[1] for place in file_places(tmp_path, "zyxcomment", "zyxtone", EMAIL)} == {
        "zyxcomment", "zyxtone", EMAIL,
    }  # fmt: skip
    annotator = Annotator.objects.get(user=person)
    planned = plan_erasure(annotator)
    with django_capture_on_commit_callbacks(execute=True):
        done = erase_judgements(annotator=annotator, by=None)
    assert done == planned
    assert done.models == (f"{model.name}@{model.version}",)
    assert database_places(*WORDS) == []
    assert file_places(tmp_path, *WORDS, EMAIL) == []
    allowed = {"accounts_user.email", "accounts_auditalias.value", "annotation_annotator.name"}
    assert {place.split(": ")[0] for place in database_places(EMAIL)} <= allowed
    names = set(Metric.objects.values_list("name", flat=True))
    assert names == {"metric 0", "metric 2"}  # that of others' words stays
    assert set(Criterion.objects.values_list("name", flat=True)) == {"care", *names}
    with django_capture_on_commit_callbacks(execute=True):
        leaving.delete_user(user=person, by=None, reason="asked", erase_comments=True)
    assert database_places(EMAIL, "zyxperson", NAME, "Zyxname", *WORDS) == []
    assert file_places(tmp_path, EMAIL, NAME, *WORDS) == []


def test_deleting_an_account_with_its_comments_leaves_no_word_of_them(
    project: Project, person: User, tmp_path: Path, django_capture_on_commit_callbacks: Any
) -> None:
    _use_everywhere(project)
    before = Annotation.objects.count()
    with django_capture_on_commit_callbacks(execute=True):
        leaving.delete_user(user=person, by=None, reason="asked", erase_comments=True)
    assert database_places(EMAIL, "zyxperson", NAME, "Zyxname", *WORDS) == []
    assert file_places(tmp_path, EMAIL, NAME, *WORDS) == []
    assert Annotation.objects.count() == before
