"""What people do with metrics, and what then becomes of them."""

import pytest

from apps.accounts.models import AuditEvent, Project, User
from apps.annotation.models import Annotator, Campaign, Comment
from apps.core.errors import DomainError
from apps.core.jobs.job_queue import JobState
from apps.datasets.erasure import erase_judgements, erase_trajectory
from apps.metrics import selectors, services
from apps.metrics.models import Aspect, Induction, Metric, MetricVerdict
from apps.metrics.tasks import advance_inductions
from apps.rubrics.models import Criterion
from apps.trajectories.models import Trajectory
from tests.metrics.said import comments, import_comments

pytestmark = pytest.mark.django_db(transaction=True)


def metric(induction: Induction, position: int) -> Metric:
    return induction.metrics.get(position=position)


def work(induction: Induction) -> Induction:
    advance_inductions()
    induction.refresh_from_db()
    return induction


def test_an_induction_is_kept_with_what_it_rests_on(induced: Induction) -> None:
    assert [metric.name for metric in induced.metrics.all()] == ["metric 0", "metric 1"]
    assert induced.aspects.count() == Comment.objects.count() == 24
    assert MetricVerdict.objects.filter(metric__induction=induced).count() == 24
    orders = metric(induced, 0)
    assert all("order" in text for text in orders.aspects.values_list("feedback", flat=True))
    assert induced.result["metrics"] == 2
    assert "Rude" not in str(induced.result), "people's words are in rows that go with their comments"
    point = orders.aspects.select_related("comment").first()
    assert point is not None
    assert (point.trajectory_id, point.step) == (point.comment.trajectory_id, point.comment.first_step)


def test_nothing_to_induce_from(project: Project) -> None:
    with pytest.raises(DomainError, match="This project has no comments yet"):
        services.start_induction(project=project)
    assert not Induction.objects.exists()


def test_one_at_a_time(commented: Project) -> None:
    services.start_induction(project=commented)
    with pytest.raises(DomainError, match="still running"):
        services.start_induction(project=commented)


def test_only_the_comments_of_a_campaign(commented: Project, fake_child: None) -> None:
    import_comments(commented, comments(2), campaign="Others")
    others = Campaign.objects.get(project=commented, name="Others")
    induction = work(services.start_induction(project=commented, campaign=others))
    assert induction.aspects.count() == 8
    assert set(
        induction.aspects.values_list("comment__annotation__assignment__item__campaign", flat=True)
    ) == {others.pk}


def test_what_the_core_refuses_is_said(project: Project, fake_child: None) -> None:
    (one, *_) = comments(1)
    import_comments(project, [one | {"text": "Please refuse this."}])
    induction = work(services.start_induction(project=project))
    assert induction.state == JobState.FAILED
    assert induction.error == "These comments are refused."


def test_accepting_makes_a_criterion(induced: Induction, owner: User) -> None:
    criterion = services.accept_metric(metric=metric(induced, 0), by=owner)
    assert criterion.origin == Criterion.Origin.INDUCED
    assert (criterion.name, criterion.version) == ("metric 0", 1)
    assert criterion.good_example
    assert "order" in criterion.definition
    assert metric(induced, 0).state == Metric.State.ACCEPTED
    assert AuditEvent.objects.filter(verb="metric.accepted").exists()


def test_editing_what_was_accepted_makes_the_next_version(induced: Induction, owner: User) -> None:
    services.accept_metric(metric=metric(induced, 0), by=owner)
    services.edit_metric(
        metric=metric(induced, 0), name="looks first", definition="Looks before it acts.", by=owner
    )
    found = metric(induced, 0)
    assert found.criterion is not None
    assert (found.criterion.name, found.criterion.definition) == ("looks first", "Looks before it acts.")
    with pytest.raises(DomainError, match="Another metric"):
        services.edit_metric(metric=metric(induced, 1), name="looks  first", definition="", by=owner)


def test_a_rubric_of_the_accepted(induced: Induction, owner: User) -> None:
    with pytest.raises(DomainError, match="Accept a metric first"):
        services.create_rubric(induction=induced, name="Mine", by=owner)
    for position in (0, 1):
        services.accept_metric(metric=metric(induced, position), by=owner)
    rubric = services.create_rubric(induction=induced, name="Mine", by=owner)
    assert {record.origin for record in rubric.criteria.all()} == {Criterion.Origin.INDUCED}
    assert rubric.entries.count() == 2


def test_merging_moves_the_points_and_judges_again(induced: Induction, owner: User) -> None:
    services.merge_metrics(metric=metric(induced, 1), into=metric(induced, 0), by=owner)
    induced.refresh_from_db()
    assert induced.state == JobState.QUEUED
    work(induced)
    assert metric(induced, 1).merged_into == metric(induced, 0)
    assert metric(induced, 0).aspects.count() == 24
    assert set(MetricVerdict.objects.values_list("metric", flat=True)) == {metric(induced, 0).pk}
    assert induced.result["changed"] is True
    assert induced.result["held_out"]["n"] == 4, "of before; the page says so"
    with pytest.raises(DomainError, match="was merged"):
        services.accept_metric(metric=metric(induced, 1), by=owner)


def test_splitting_takes_a_phrase_whole(induced: Induction, owner: User) -> None:
    orders = metric(induced, 0)
    first = orders.aspects.first()
    assert first is not None
    same = orders.aspects.filter(feedback=first.feedback).count()
    assert same > 1
    new = services.split_metric(metric=orders, aspects=[first.pk], name="the first", by=owner)
    work(induced)
    assert set(new.aspects.values_list("feedback", flat=True)) == {first.feedback}
    assert new.aspects.count() == same
    assert orders.aspects.exclude(feedback=first.feedback).count() == orders.aspects.count()
    assert new.verdicts.count() == 12
    everything = list(new.aspects.values_list("pk", flat=True))
    with pytest.raises(DomainError, match="not all of them"):
        services.split_metric(metric=new, aspects=everything, name="all of it", by=owner)


def test_a_rejection_keeps_the_points_and_can_be_taken_back(induced: Induction, owner: User) -> None:
    before = metric(induced, 1).aspects.count()
    services.reject_metric(metric=metric(induced, 1), by=owner)
    work(induced)
    assert metric(induced, 1).state == Metric.State.REJECTED
    assert metric(induced, 1).aspects.count() == before
    assert not metric(induced, 1).verdicts.exists()
    with pytest.raises(DomainError, match="only metric left"):
        services.reject_metric(metric=metric(induced, 0), by=owner)
    services.restore_metric(metric=metric(induced, 1), by=owner)
    work(induced)
    assert metric(induced, 1).verdicts.count() == 12


def test_nothing_changes_while_it_is_judged(induced: Induction, owner: User) -> None:
    services.judge_again(induced)
    with pytest.raises(DomainError, match="are being judged"):
        services.accept_metric(metric=metric(induced, 0), by=owner)


def test_the_next_one_is_held_against_it(induced: Induction, owner: User) -> None:
    services.edit_metric(metric=metric(induced, 0), name="metric 0", definition="As I say.", by=owner)
    services.edit_metric(metric=metric(induced, 1), name="tone", definition="", by=owner)
    again = work(services.start_induction(project=induced.project))
    assert again.previous == induced
    assert metric(again, 0).previous == metric(induced, 0)
    assert metric(again, 0).definition == "As I say."
    assert metric(again, 1).previous is None
    assert [metric.name for metric in selectors.dropped_since_previous(again)] == ["tone"]


def test_what_is_deleted_takes_its_points_along(induced: Induction, owner: User) -> None:
    run = Trajectory.objects.order_by("pk").first()
    assert run is not None
    mine = Aspect.objects.filter(trajectory=run).count()
    assert mine == 2
    erase_trajectory(trajectory=run, by=owner)
    assert Aspect.objects.count() == 24 - mine
    services.judge_again(induced)
    assert work(induced).state == JobState.SUCCEEDED
    assert induced.aspects.count() == 24 - mine
    erase_judgements(annotator=Annotator.objects.get(name="ann"), by=owner)
    assert not Aspect.objects.exists()
    assert selectors.metric_definition(metric(induced, 0)) == ""


def test_a_run_deleted_while_it_is_induced(
    commented: Project, fake_child: None, owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    from apps.metrics import executor

    run = Trajectory.objects.order_by("pk").first()
    keep = executor.store_induction

    def delete_first(*given: object) -> None:
        assert run is not None
        erase_trajectory(trajectory=run, by=owner)
        keep(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(executor, "store_induction", delete_first)
    induction = work(services.start_induction(project=commented))
    assert induction.state == JobState.SUCCEEDED
    assert induction.aspects.count() == 22


def test_what_changed_while_it_was_judged_is_judged_once_more(
    induced: Induction, owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    from apps.metrics import executor

    services.reject_metric(metric=metric(induced, 1), by=owner)
    keep, times = executor.store_new_verdicts, []

    def restore_first(*given: object) -> None:
        times.append(1)
        if len(times) == 1:
            services.restore_metric(metric=metric(induced, 1), by=owner)
        keep(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(executor, "store_new_verdicts", restore_first)
    assert work(induced).state == JobState.SUCCEEDED
    assert len(times) == 2
    assert metric(induced, 1).verdicts.count() == 12


def test_another_project_has_none_of_it(induced: Induction) -> None:
    other = Project.objects.create(slug="other", name="Other")
    with pytest.raises(DomainError, match="no induction"):
        selectors.get_induction(other, induced.pk)
    with pytest.raises(DomainError, match="no metric"):
        selectors.get_metric(other, metric(induced, 0).pk)
