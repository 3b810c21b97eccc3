"""What a verifier said becomes comparisons, by itself where that was asked for."""

from typing import Any

import pytest

from apps.accounts.models import AuditEvent, Project
from apps.annotation.feedback.records import feedback_records
from apps.core.errors import Conflict
from apps.core.jobs.job_queue import JobState
from apps.datasets.models import DatasetVersion
from apps.monitoring.models import Monitor
from apps.retraining.cycle import start_cycle, start_online_cycles
from apps.retraining.models import RetrainingCycle
from apps.retraining.online import count_new_verified, import_verified_comparisons, set_online_learning
from apps.rewards.models import Endpoint, ScoreSample
from apps.training.models import RewardModel, TrainingRun
from tests.monitoring.traffic import deployed
from workers.schema import PreferenceRecord


@pytest.fixture
def endpoint(project: Project) -> Endpoint:
    """Whose verifier's number is the component `truth`."""
    dataset_version = DatasetVersion.objects.create(
        project=project, name="d", version=1, state=JobState.SUCCEEDED, splits={"test": 9}
    )
    run = TrainingRun.objects.create(
        project=project, dataset_version=dataset_version, recipe_name="own", recipe={}, model_name="m"
    )
    model = RewardModel.objects.create(
        project=project, name="politeness", version=1, artifact="a", manifest={}, training_run=run
    )
    endpoint = Endpoint.objects.create(project=project, name="reward", sample_share=1.0)
    revision = deployed(endpoint, model)
    revision.spec["components"][0]["model"] = str(model)
    revision.save()
    endpoint.refresh_from_db()
    return endpoint


def kept(endpoint: Endpoint, prompt: str, answer: str, truth: float | None) -> None:
    conversation = [{"role": "user", "content": prompt}, {"role": "assistant", "content": answer}]
    said: dict[str, Any] = {"main": 0.0} | ({} if truth is None else {"truth": truth})
    ScoreSample.objects.create(
        endpoint=endpoint,
        version=1,
        caller="tsk_1",
        item={"messages": conversation},
        result={"raw": 0.0, "components": said, "flags": []},
    )


def learnt(project: Project) -> list[tuple[str, str]]:
    return [
        (record.a.steps[-1].text, record.b.steps[-1].text)
        for record in feedback_records(project=project)
        if isinstance(record, PreferenceRecord) and record.choice == "a" and record.origin == "judge"
    ]


def test_right_answers_are_compared_with_wrong_ones(endpoint, project, researcher) -> None:
    for answer, truth in [("4", 1.0), ("four", 1.0), ("5", 0.0), ("?", None), ("4", 1.0)]:
        kept(endpoint, "2 + 2?", answer, truth)
    kept(endpoint, "3 + 3?", "6", 1.0)  # nothing wrong to compare it with
    assert import_verified_comparisons(endpoint=endpoint, by=researcher) == 2
    assert sorted(learnt(project)) == [("4", "5"), ("four", "5")]
    with pytest.raises(Conflict, match="no new comparisons from the verifier"):
        import_verified_comparisons(endpoint=endpoint, by=researcher)
    kept(endpoint, "3 + 3?", "7", 0.0)
    assert import_verified_comparisons(endpoint=endpoint, by=researcher) == 1


def test_a_prompt_is_not_learnt_by_heart(endpoint, researcher) -> None:
    for number in range(20):
        kept(endpoint, "2 + 2?", f"4, for the {number}th time", 1.0)
        kept(endpoint, "2 + 2?", f"{number + 5}", 0.0)
    assert import_verified_comparisons(endpoint=endpoint, by=researcher) == 4


def test_it_begins_by_itself_after_so_many(endpoint, researcher) -> None:
    set_online_learning(endpoint=endpoint, every=4, by=researcher)
    for number in range(3):
        kept(endpoint, f"{number}?", "right", 1.0)
    start_online_cycles()
    assert not RetrainingCycle.objects.exists()
    kept(endpoint, "0?", "wrong", 0.0)
    assert count_new_verified(Monitor.objects.get()) == 4
    start_online_cycles()
    cycle = RetrainingCycle.objects.get()
    assert (cycle.stage, cycle.automatic, cycle.heads_only, cycle.staged_release) == (
        "freezing",
        True,
        True,
        True,
    )
    start_online_cycles()  # one is on its way
    assert RetrainingCycle.objects.count() == 1
    RetrainingCycle.objects.all().delete()
    start_online_cycles()  # nothing was verified since
    assert count_new_verified(Monitor.objects.get()) == 0
    assert not RetrainingCycle.objects.exists()
    assert AuditEvent.objects.filter(verb="monitor.learns").count() == 1


def test_where_there_is_nothing_to_learn_no_turn_begins(endpoint, researcher) -> None:
    set_online_learning(endpoint=endpoint, every=1, by=researcher)
    kept(endpoint, "a?", "right", 1.0)
    start_online_cycles()
    assert not RetrainingCycle.objects.exists()
    assert count_new_verified(Monitor.objects.get()) == 0  # it is not looked at again and again
    with pytest.raises(Conflict):
        start_cycle(endpoint=endpoint, by=researcher, verified=True)
    assert not RetrainingCycle.objects.exists()
