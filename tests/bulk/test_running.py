"""Bulk jobs by the real child process: a linear model, and a judge that answers by rules."""

import json
import os
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from apps.accounts.models import Project
from apps.bulk import chunks, engine_process, services
from apps.bulk.exports import result_rows
from apps.bulk.models import BulkJob
from apps.bulk.running import work_on_chunks
from apps.core.storage import artifacts
from apps.llm.services import LLMConnectionSpec, create_llm_connection
from apps.metrics.models import MetricVerdict
from apps.metrics.selectors import active_metrics
from apps.metrics.services import reject_metric, start_induction
from apps.metrics.tasks import advance_inductions
from apps.training.models import RewardModel
from apps.trajectories.models import Trajectory
from apps.trajectories.selectors import load_trajectories
from benchmarks.rule_judge import judged
from benchmarks.small_linear import save_linear_of
from tests.bulk.stored import score_job, store_trajectories
from tests.judges import parcels
from tests.metrics.said import comments, import_comments
from tests.workers.llm.scripted import Script, scripted
from workers.active_learning.features import model_features
from workers.bulk.scoring import ScoreWork
from workers.errors import RewardError
from workers.models import ModelScore, load
from workers.schema import Trajectory as TrajectoryContent

pytestmark = [pytest.mark.ml, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def linear(project: Project, own_home: None, tmp_path: Path) -> RewardModel:
    keys = store_trajectories(project, 40)
    folder = save_linear_of(list(load_trajectories(keys).values()), tmp_path / "linear")
    manifest = json.loads((folder / "touchstone.json").read_text())
    artifact = artifacts.store_tree(folder, "models/desk/linear-1")
    return RewardModel.objects.create(
        project=project, name="linear", version=1, artifact=artifact, manifest=manifest
    )


def done(job: BulkJob) -> BulkJob:
    work_on_chunks()
    job.refresh_from_db()
    return job


@pytest.mark.real_children
def test_rewards_are_those_of_the_model(
    project: Project, linear: RewardModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services, "CHUNK_ITEMS", 7)
    job = done(score_job(project, linear, with_steps=True))
    assert job.state == "succeeded", job.error
    rows = {int(row["trajectory"]): row for row in result_rows(job)}
    trajectories = load_trajectories(rows)
    assert len(rows) == Trajectory.objects.count() == 40
    model = load(artifacts.stage(linear.artifact))
    for key, row in rows.items():
        (score,) = model.score([model.render(trajectories[key])])
        assert row["reward"] == pytest.approx(score.raw, abs=1e-9) and row["tokens"] == score.tokens
        assert row["std"] == pytest.approx(score.std) and row["steps"] == pytest.approx(score.step_rewards)


class PickyModel:
    """Renders no trajectory of the task t1, and scores no batch with one of t2."""

    def render(self, trajectory: TrajectoryContent) -> Any:
        if trajectory.task.id == "t1":
            raise RewardError("It has no text.")
        return SimpleNamespace(tokens=len(trajectory.steps[0].text), task=trajectory.task.id)

    def score(self, batch: list[Any], *, cache: Any) -> list[ModelScore]:
        if any(rendered.task == "t2" for rendered in batch):
            raise RewardError("It is not finite.")
        return [
            ModelScore(raw=float(rendered.tokens), offset=0.0, std=None, step_rewards=())
            for rendered in batch
        ]


def test_an_item_that_cannot_be_scored_has_a_problem_alone(project: Project) -> None:
    found = load_trajectories(store_trajectories(project, 10))
    work = ScoreWork(cast(Any, PickyModel()), with_steps=False)
    items = work.compute(work.read(list(found.values())))
    assert [item.trajectory for item in items] == list(found)
    problems = ["", "", *2 * ["It has no text."], *2 * ["It is not finite."], *4 * [""]]
    assert [item.problem for item in items] == problems
    assert all((item.reward is None) == bool(item.problem) for item in items)


def test_embeddings_are_the_states_that_rewards_are_read_at(project: Project, linear: RewardModel) -> None:
    job = done(services.create_bulk_job(project=project, work="embed", model=linear, filter="success=no"))
    assert job.state == "succeeded", job.error
    rows = list(result_rows(job))
    model = load(artifacts.stage(linear.artifact))
    found = load_trajectories(int(row["trajectory"]) for row in rows)
    rendered = [model.render(found[int(row["trajectory"])]) for row in rows]
    expected = model_features(model.model, rendered)
    assert [row["embedding"] for row in rows] == [pytest.approx(vector) for vector in expected.tolist()]


def test_a_killed_process_and_a_deleted_trajectory(
    project: Project, linear: RewardModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services, "CHUNK_ITEMS", 5)
    job = score_job(project, linear)
    gone = Trajectory.objects.order_by("-pk")[0]
    stored: list[int] = []
    real = chunks.store_chunk
    children: list[Any] = []
    start = engine_process.core_subprocess.start

    def remember(*arguments: Any, **named: Any) -> Any:
        children.append(start(*arguments, **named))
        return children[-1]

    def store_then_kill(chunk: Any, items: Any, *, seconds: float) -> None:
        real(chunk, items, seconds=seconds)
        stored.append(chunk.pk)
        if len(stored) == 2:
            Trajectory.objects.filter(pk=gone.pk).delete()
            os.kill(children[-1].pid, signal.SIGKILL)

    monkeypatch.setattr(engine_process.core_subprocess, "start", remember)
    monkeypatch.setattr(engine_process, "store_chunk", store_then_kill)
    assert done(job).state == "succeeded", job.error
    assert len(children) == 2, "another process goes on with what the killed one left"
    keys = [int(row["trajectory"]) for row in result_rows(job)]
    assert len(keys) == len(set(keys)) == 39 and gone.pk not in keys
    assert sum(job.chunks.values_list("missing", flat=True)) == 1


def test_a_model_that_is_not_there_fails_the_job(project: Project, linear: RewardModel) -> None:
    artifacts.delete_tree(linear.artifact)
    job = done(score_job(project, linear))
    assert job.state == "failed" and job.error
    assert set(job.chunks.values_list("state", flat=True)) == {"queued"}, "they go on when the job is resumed"


def test_induced_metrics_judge_as_their_induction_does(project: Project) -> None:
    import_comments(project, comments(8))
    others = store_trajectories(project, 4, words="I am glad to help, the parcel is on its way.")
    induction = start_induction(project=project, by=None)
    advance_inductions()
    reject_metric(metric=induction.metrics.order_by("-position")[0], by=None)
    advance_inductions()  # it judges by the others again
    job = done(services.create_bulk_job(project=project, work="induce", induction=induction))
    assert job.state == "succeeded", job.error
    rows = {int(row["trajectory"]): row["answer"] for row in result_rows(job)}
    assert len(rows) == Trajectory.objects.count() == 20
    metrics = list(active_metrics(induction))
    assert metrics
    for key in others:
        for metric, verdict in zip(metrics, rows[key], strict=True):
            stored = MetricVerdict.objects.get(metric=metric, trajectory=key)
            assert verdict["metric"] == metric.name
            assert (verdict["sign"], verdict["step"]) == (stored.sign, stored.step)
            assert verdict["value"] == pytest.approx(stored.value, abs=1e-4)
    assert any(verdict["sign"] for answer in rows.values() for verdict in answer)


def test_a_judge_scores_each_once(project: Project, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.OUTGOING_ALLOW = ["127.0.0.0/8"]
    monkeypatch.setattr(services, "JUDGED_ITEMS", 20)
    parcels.annotate(project)
    script = Script(judged)
    with scripted(script) as url:
        spec = LLMConnectionSpec(name="rules", base_url=url, model="rules")
        connection = create_llm_connection(project=project, spec=spec, key="sk-canary", by=None)
        judge = parcels.judge(connection, "rules", mode="score")
        job = done(services.create_bulk_job(project=project, work="judge", judge=judge))
        asked = len(script.asked)
        again = done(services.create_bulk_job(project=project, work="judge", judge=judge))
    assert job.state == again.state == "succeeded", job.error
    rows = list(result_rows(job))
    assert len(rows) == Trajectory.objects.count() == asked
    assert len(script.asked) == asked, "an answer is paid for once"
    (criterion,) = judge.criteria
    assert criterion is not None
    for row in rows:
        (answer,) = row["answer"]
        scale = criterion.scale_high - criterion.scale_low
        assert row["reward"] == pytest.approx((answer["value"] - criterion.scale_low) / scale)
