"""Pages of judges: who may see them, what they say without a language model, and what a researcher does there."""

from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from apps.accounts.models import AuditEvent, Project, User
from apps.judges.models import Judge, JudgeResult, JudgeRun
from apps.judges.services import delete_judge, start_judge_run
from apps.llm.models import LLMConnection
from tests.judges import parcels
from tests.judges.parcels import SCORED, campaign

pytestmark = pytest.mark.django_db
HOSTILE = "<script>alert(1)</script>{{ 7|add:7 }}"


@pytest.fixture
def judge_run(rules: LLMConnection) -> JudgeRun:
    """Answered, and wrong about every other run."""
    judge = parcels.judge(rules, guidelines=HOSTILE)
    begun = start_judge_run(judge=judge, campaign=campaign(rules.project, SCORED))
    for place, row in enumerate(begun.results.order_by("pk")):
        value = 1.0 if place % 2 else 5.0
        said = {"value": value, "spread": None, "reason": f"{HOSTILE} number {place}", "step": 1}
        JudgeResult.objects.filter(pk=row.pk).update(state="done", answer=[said])
    last = begun.results.order_by("-pk").first()
    assert last is not None
    JudgeResult.objects.filter(pk=last.pk).update(state="failed", answer=None, problem=f"It said {HOSTILE}.")
    JudgeRun.objects.filter(pk=begun.pk).update(state="succeeded")
    begun.refresh_from_db()
    return begun


def pages(judge_run: JudgeRun) -> list[str]:
    base = f"/p/{judge_run.judge.project.slug}/judges/"
    own = f"{base.removesuffix('judges/')}judge-runs/{judge_run.pk}/"
    return [base, f"{base}{judge_run.judge_id}/", own, f"{own}status/"]


def actions(judge_run: JudgeRun) -> list[str]:
    one = f"/p/{judge_run.judge.project.slug}/judges/{judge_run.judge_id}/"
    own = f"/p/{judge_run.judge.project.slug}/judge-runs/{judge_run.pk}/"
    return [f"{one}test/", f"{one}run/", f"{own}cancel/", f"{own}retry/", f"{own}save/", f"{one}delete/"]


def test_strangers_and_annotators(
    client: Client, judge_run: JudgeRun, outsider: User, annotator: User
) -> None:
    for who, status in ((outsider, 404), (annotator, 403)):
        client.force_login(who)
        for url in pages(judge_run):
            assert client.get(url).status_code == status, url
        for url in actions(judge_run):
            assert client.post(url).status_code == status, url
    client.logout()
    assert client.get(pages(judge_run)[0]).status_code == 302
    assert Judge.objects.exists()


def test_wrong_methods_and_what_is_not_there(client: Client, judge_run: JudgeRun, researcher: User) -> None:
    client.force_login(researcher)
    for url in actions(judge_run):
        assert client.get(url).status_code == 405, url
    other = Project.objects.create(slug="other", name="Other")
    base = f"/p/{judge_run.judge.project.slug}/judges/"
    for url in (
        f"{base}99999/",
        f"{base.removesuffix('judges/')}judge-runs/99999/",
        f"/p/{other.slug}/judges/{judge_run.judge_id}/",
    ):
        assert client.get(url).status_code == 404, url


def test_pages_tell_what_was_measured_and_escape_what_was_said(
    client: Client, judge_run: JudgeRun, researcher: User
) -> None:
    client.force_login(researcher)
    shown = [client.get(url).content.decode() for url in pages(judge_run)]
    for page in shown:
        assert "<script>alert" not in page and "14 number" not in page
    _, about, told, _ = shown
    assert "&lt;script&gt;" in about and "&lt;script&gt;" in told
    assert "Agreement with annotators" in told and "Care" in told
    assert "Disagreements with annotators" in told and "Adjudicate" in told
    assert "Failed results" in told and "Retry 1 without an answer" in told
    assert "Save as annotations" in told
    assert "judge:rules" in about


def test_without_a_language_model_it_says_what_is_missing(
    client: Client, researcher: User, owner: User
) -> None:
    project = owner.memberships.get().project
    for who, told in (
        (researcher, "An owner can create one on the page LLM connections"),
        (owner, ">Create an LLM connection</a>"),
    ):
        client.force_login(who)
        page = client.get(f"/p/{project.slug}/judges/").content.decode()
        assert "A judge needs an LLM connection" in page and told in page
        assert "Everything else works without" in page
        posted = client.post(f"/p/{project.slug}/judges/", {"name": "x", "mode": "compare"})
        assert posted.status_code == 422 and not Judge.objects.exists()


def test_without_a_rubric_it_says_where_one_is_written(
    client: Client, rules: LLMConnection, researcher: User
) -> None:
    client.force_login(researcher)
    url = f"/p/{rules.project.slug}/judges/"
    assert "There is no rubric yet" not in client.get(url).content.decode()
    rules.project.rubrics.all().delete()
    page = client.get(url).content.decode()
    assert "There is no rubric yet" in page and f'href="/p/{rules.project.slug}/rubrics/"' in page


def test_a_removed_language_model_leaves_figures_and_says_so(
    client: Client, judge_run: JudgeRun, researcher: User
) -> None:
    client.force_login(researcher)
    assert judge_run.judge.llm_connection is not None
    judge_run.judge.llm_connection.delete()
    about, told = (client.get(url).content.decode() for url in pages(judge_run)[1:3])
    assert "This judge cannot run" in about and "Agreement with annotators" in told
    base = f"/p/{judge_run.judge.project.slug}/judges/"
    tried = client.post(f"{base}{judge_run.judge_id}/test/", {"trajectories": ""})
    assert tried.status_code == 422 and "was deleted" in tried.content.decode()
    again = client.post(f"{base.removesuffix('judges/')}judge-runs/{judge_run.pk}/retry/")
    assert again.status_code == 400 and "was deleted" in again.content.decode()


def test_removed_it_leaves_what_it_handed_in(client: Client, judge_run: JudgeRun, researcher: User) -> None:
    client.force_login(researcher)
    base = f"/p/{judge_run.judge.project.slug}/judges/"
    page = client.post(f"{base}{judge_run.judge_id}/delete/", follow=True).content.decode()
    assert "was deleted" in page and not Judge.objects.exists() and not JudgeRun.objects.exists()
    assert AuditEvent.objects.filter(verb="judge.removed").exists()


def run_command(*given: str) -> Any:
    return call_command("judge", *given)


def test_the_command_says_what_is_missing(judge_run: JudgeRun) -> None:
    project = judge_run.judge.project
    with pytest.raises(CommandError, match=r"desk has no judge named nobody \(existing: rules\)"):
        run_command(project.slug, "nobody", "--campaign", SCORED)
    with pytest.raises(CommandError, match="no campaign none in desk"):
        run_command(project.slug, "rules", "--campaign", "none")
    delete_judge(judge=judge_run.judge, by=None)
    with pytest.raises(CommandError, match=r"existing: none\). Create one on the page Judges"):
        run_command(project.slug, "rules", "--campaign", SCORED)
