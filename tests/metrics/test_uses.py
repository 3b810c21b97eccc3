"""What metrics are good for: the explorer's filter, what to fine-tune on, guidelines, the scoreboard."""

import json
from datetime import timedelta
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db.models import F
from django.test import Client

from apps.accounts.models import Project, User
from apps.core.errors import DomainError
from apps.datasets.erasure import erase_trajectory
from apps.datasets.export_jobs import export_feedback, file_name
from apps.datasets.tasks import advance_exports
from apps.metrics import scoreboard as boards
from apps.metrics import services
from apps.metrics.models import Induction, Metric, MetricVerdict
from apps.metrics.services.inductions import refresh_facts
from apps.metrics.tasks import advance_inductions
from apps.trajectories.filter_queries import filter_trajectories
from apps.trajectories.models import Trajectory, TrajectoryFact
from apps.trajectories.selectors import best_of_tasks, fact_names

pytestmark = pytest.mark.django_db(transaction=True)


def keys(induction: Induction, name: str, sign: int) -> set[int]:
    rows = MetricVerdict.objects.filter(metric__induction=induction, metric__name=name, sign=sign)
    return set(rows.values_list("trajectory", flat=True))


def found(project: Project, **filters: str) -> set[int]:
    return set(filter_trajectories(project, filters).values_list("pk", flat=True))  # type: ignore[arg-type]


def test_runs_are_found_by_what_metrics_say(induced: Induction) -> None:
    project = induced.project
    assert fact_names(project) == ["metric 0", "metric 1"]
    bad, good = keys(induced, "metric 0", -1), keys(induced, "metric 0", 1)
    assert bad and good
    assert found(project, fact="metric 0", judged="bad") == bad
    assert found(project, fact="metric 0", judged="good") == good
    assert found(project, fact="metric 0") == bad | good, "those it does not apply to are not judged"
    assert found(project, judged="clean") == good
    assert found(project, judged="bad") == bad
    assert found(project, fact="nothing", judged="bad") == set()
    with pytest.raises(DomainError, match="must be one of good, bad, clean"):
        found(project, judged="awful")


def test_what_is_rejected_is_not_filtered_by(induced: Induction, owner: User) -> None:
    metric = induced.metrics.get(position=0)
    services.reject_metric(metric=metric, by=owner)
    assert fact_names(induced.project) == ["metric 1"]
    advance_inductions()
    services.edit_metric(metric=induced.metrics.get(position=1), name="Tone", definition="", by=owner)
    assert fact_names(induced.project) == ["Tone"]
    services.restore_metric(metric=metric, by=owner)
    advance_inductions()
    assert fact_names(induced.project) == ["Tone", "metric 0"]


def test_proposals_of_an_older_induction_give_way_and_what_was_accepted_stays(
    induced: Induction, owner: User
) -> None:
    services.edit_metric(metric=induced.metrics.get(position=0), name="Looks up", definition="", by=owner)
    services.accept_metric(metric=induced.metrics.get(position=0), by=owner)
    Metric.objects.filter(induction=induced, position=1).update(name="Old proposal")
    services.start_induction(project=induced.project)
    advance_inductions()
    assert fact_names(induced.project) == ["Looks up", "metric 0", "metric 1"]


def test_facts_leave_with_their_run(induced: Induction) -> None:
    run = Trajectory.objects.filter(facts__isnull=False).first()
    assert run is not None
    erase_trajectory(trajectory=run, by=None)
    assert not TrajectoryFact.objects.filter(trajectory=run.pk).exists()
    refresh_facts(induced.project)


def test_the_explorer_filters_by_them(owner_client: Client, induced: Induction) -> None:
    metric = induced.metrics.get(position=0)
    base = f"/p/{induced.project.slug}/"
    page = owner_client.get(f"{base}metrics/{metric.pk}/").content.decode()
    assert "trajectories/?fact=metric+0&amp;judged=bad" in page
    shown = owner_client.get(f"{base}trajectories/?fact=metric+0&judged=bad").content.decode()
    assert f"<strong>{len(keys(induced, 'metric 0', -1))}</strong> trajectories match" in shown
    assert owner_client.get(f"{base}trajectories/?fact=gone&judged=bad").status_code == 200


def test_what_to_fine_tune_on(induced: Induction, tmp_path: Path) -> None:
    project = induced.project
    best = list(best_of_tasks(Trajectory.objects.filter(project=project)))
    judged = Trajectory.objects.filter(facts__isnull=False).values("task").distinct().count()
    assert len(best) == len({run.task_id for run in best}) == judged
    TrajectoryFact.objects.filter(name="metric 1").update(value=-F("value"))
    for fact in fact_names(project):
        for run in best_of_tasks(Trajectory.objects.filter(project=project), fact):
            mine = run.facts.get(name=fact).value
            others = TrajectoryFact.objects.filter(name=fact, trajectory__task=run.task_id)
            assert mine == max(others.values_list("value", flat=True))
    refresh_facts(project)
    out = tmp_path / "sft.jsonl"
    slug = project.slug
    call_command(
        "export_trajectories",
        slug,
        "--format",
        "openai",
        "--judged",
        "clean",
        "--best-of-task",
        "--out",
        str(out),
    )
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    clean = Trajectory.objects.filter(pk__in=keys(induced, "metric 0", 1))
    assert len(lines) == clean.values("task").distinct().count() and all(line["messages"] for line in lines)
    with pytest.raises(CommandError, match="There is no metric 'polite'; known are metric 0, metric 1"):
        call_command("export_trajectories", slug, "--format", "openai", "--by", "polite", "--out", str(out))


def test_guidelines(induced: Induction, owner: User, tmp_path: Path) -> None:
    project = induced.project
    out = tmp_path / "guidelines.md"
    call_command("export_feedback", project.slug, "--format", "guidelines", "--out", str(out))
    text = out.read_text()
    assert text.startswith("# What people want of you\n")
    assert "## metric 0" in text and "## metric 1" in text
    assert "- Looked the order up first." in text
    services.edit_metric(
        metric=induced.metrics.get(position=1), name="Tone", definition="Kind # words\n# of any", by=owner
    )
    services.accept_metric(metric=induced.metrics.get(position=1), by=owner)
    call_command("export_feedback", project.slug, "--format", "guidelines", "--out", str(out))
    text = out.read_text()
    assert "## metric 0" not in text, "once something was accepted, only that counts"
    assert "\nKind # words # of any\n" in text


def test_guidelines_need_a_metric_and_say_what_cannot_be(commented: Project, tmp_path: Path) -> None:
    for more, why in (
        ([], "Extract metrics from comments"),
        (["--kind", "comment"], "cannot be filtered by kinds"),
    ):
        with pytest.raises(CommandError, match=why):
            call_command("export_feedback", commented.slug, "--format", "guidelines", *more)


def test_guidelines_from_the_page(induced: Induction, owner: User) -> None:
    export = export_feedback(project=induced.project, format="guidelines", filters={}, by=owner)
    assert file_name(export).endswith(".md")
    advance_exports()
    export.refresh_from_db()
    assert export.state == "succeeded", export.error


def test_the_scoreboard(owner_client: Client, induced: Induction) -> None:
    project = induced.project
    runs = list(Trajectory.objects.filter(project=project).order_by("pk"))
    for number, run in enumerate(runs):
        Trajectory.objects.filter(pk=run.pk).update(
            agent_name="bot",
            agent_version=f"v{1 + number % 2}",
            created_at=run.created_at - timedelta(days=number),
        )
    board = boards.scoreboard(project)
    assert [row.title for row in board.rows] == ["bot v2", "bot v1"], "in the order they were first seen"
    assert board.metrics == ["metric 0", "metric 1"]
    for row in board.rows:
        mine = set(
            Trajectory.objects.filter(project=project, agent_version=row.version).values_list("pk", flat=True)
        )
        share = row.share_by_metric["metric 0"]
        assert share.judged == len(mine)
        assert share.kept == len(keys(induced, "metric 0", 1) & mine)
        assert share.violated == len(keys(induced, "metric 0", -1) & mine)
        low, high = share.interval
        assert low <= share.value <= high
    drawn = boards.over_time(board, "metric 0")
    assert drawn is not None
    assert len(drawn["series"]) == 2
    assert len(drawn["x"]["labels"]) == len(runs)
    page = owner_client.get(f"/p/{project.slug}/metrics/scoreboard/?metric=metric+1").content.decode()
    assert "bot" in page and "<option selected>metric 1</option>" in page


def test_an_empty_scoreboard(owner_client: Client, project: Project) -> None:
    assert b"No verdicts yet" in owner_client.get(f"/p/{project.slug}/metrics/scoreboard/").content


def test_the_interval_of_a_difference() -> None:
    """Worked by hand for Agresti's ratings of a prime minister: 150 of 1600 for one side, 86 for the other."""
    share = boards.VerdictShare(judged=1600, kept=86, violated=150)
    assert share.value == pytest.approx(-0.04)
    assert share.interval == pytest.approx((-0.0587, -0.0212), abs=1e-4)
    low, high = boards.VerdictShare(judged=3, kept=0, violated=3).interval
    assert low == -1.0 and -0.6 < high < 0.0
