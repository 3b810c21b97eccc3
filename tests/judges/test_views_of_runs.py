"""Pages of judges from a form to what a run answered, by the child process; here because such tests commit."""

import re

import pytest
from django.test import Client

from apps.accounts.models import AuditEvent, User
from apps.judges.models import Judge, JudgeRun
from apps.llm.models import LLMConnection
from tests.judges import parcels
from tests.judges.parcels import COMPARED, SCORED, campaign

pytestmark = pytest.mark.django_db(transaction=True)


def test_from_the_form_to_a_trial(client: Client, rules: LLMConnection, researcher: User) -> None:
    client.force_login(researcher)
    base = f"/p/{rules.project.slug}/judges/"
    wrong = client.post(base, {"name": "careful", "llm_connection": rules.pk, "mode": "score", "rubric": ""})
    assert wrong.status_code == 422 and "Choose a rubric" in wrong.content.decode()
    form = {
        "name": "careful",
        "llm_connection": rules.pk,
        "mode": "score",
        "rubric": parcels.rubric(rules.project).pk,
    }
    made = client.post(base, form)
    assert made.status_code == 302, made.content.decode()
    judge = Judge.objects.get()
    assert (judge.name, judge.samples, judge.prompt) == ("careful", 1, 1)
    assert AuditEvent.objects.filter(verb="judge.added", target="careful").exists()
    twice = client.post(base, form)
    assert twice.status_code == 422 and "A judge named careful already exists" in twice.content.decode()
    bad = client.post(f"{base}{judge.pk}/test/", {"trajectories": "one"})
    assert bad.status_code == 422 and "trajectory IDs as numbers" in bad.content.decode()
    gone = client.post(f"{base}{judge.pk}/test/", {"trajectories": "999999"})
    assert gone.status_code == 422 and "no trajectory 999999" in gone.content.decode()
    begun = client.post(f"{base}{judge.pk}/test/", {"trajectories": ""})
    trial = parcels.done(JudgeRun.objects.get())
    told = client.get(begun.headers["location"]).content.decode()
    assert trial.is_test and trial.state == "succeeded"
    assert told.count("</article>") == 3 and "failed." in told
    link = re.search(r'href="([^"]+#t\d+-s1)"', told)
    assert link and client.get(link[1]).status_code == 200


def test_a_campaign_is_judged_handed_in_and_compared(
    client: Client, rules: LLMConnection, researcher: User
) -> None:
    client.force_login(researcher)
    judge = parcels.judge(rules, "compares", mode="compare")
    base = f"/p/{rules.project.slug}/judges/"
    none = client.post(f"{base}{judge.pk}/run/", {"campaign": campaign(rules.project, SCORED).pk})
    assert none.status_code == 422 and "no items with two trajectories" in none.content.decode()
    which = campaign(rules.project, COMPARED).pk
    for prompt in ("", "2"):
        begun = client.post(
            f"{base}{judge.pk}/run/", {"campaign": which, "prompt": prompt, "max_items": "20"}
        )
        assert begun.status_code == 302
        polling = client.get(f"{begun.headers['location']}status/").content.decode()
        assert 'hx-trigger="every 1s"' in polling and "Cancel" in polling
        parcels.done(JudgeRun.objects.order_by("-pk")[0])
        assert client.get(f"{begun.headers['location']}status/").headers["HX-Refresh"] == "true"
    second, first = JudgeRun.objects.order_by("-pk")
    assert (first.prompt, second.prompt) == (1, 2)
    told = client.get(
        f"{base.removesuffix('judges/')}judge-runs/{second.pk}/?against={first.pk}"
    ).content.decode()
    assert "Same preference" in told and "Same preference in both orders" in told
    assert "Difference: <strong>" in told and "prompt 1" in told
    handed = client.post(f"{base.removesuffix('judges/')}judge-runs/{first.pk}/save/", follow=True)
    assert "saved as annotations by judge:compares" in handed.content.decode()
    parcels.done(first)
    assert (
        "Saved as annotations"
        in client.get(f"{base.removesuffix('judges/')}judge-runs/{first.pk}/").content.decode()
    )
    assert "saved as annotations" in client.get(base).content.decode()
