"""Inductions by a language model, from the form to the rows: the real engine, a server of rules."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from apps.accounts.models import Project, User
from apps.annotation.models import Comment
from apps.llm.models import CachedCompletion, LLMConnection
from apps.llm.services import LLMConnectionSpec, create_llm_connection, delete_llm_connection
from apps.metrics import services
from apps.metrics.models import Aspect, Induction, MetricVerdict
from apps.metrics.tasks import advance_inductions
from tests.metrics.said import comments, import_comments
from tests.workers.induce.rule_based_model import TONE, answer, data, kind
from tests.workers.llm.scripted import Body, Reply, Script, scripted

pytestmark = pytest.mark.django_db(transaction=True)
KEY = "sk-canary-of-a-model"


@pytest.fixture
def script(settings: Any) -> Script:
    settings.OUTGOING_ALLOW = ["127.0.0.0/8"]
    return Script(answer)


@pytest.fixture
def model(project: Project, script: Script) -> Iterator[LLMConnection]:
    import_comments(project, comments(8))
    with scripted(script) as url:
        spec = LLMConnectionSpec(name="rules", base_url=url, model="rules")
        yield create_llm_connection(project=project, spec=spec, key=KEY, by=None)


def done(induction: Induction) -> Induction:
    advance_inductions()
    induction.refresh_from_db()
    return induction


@pytest.mark.slow
@pytest.mark.real_children
def test_from_the_form_to_the_page(client: Client, owner: User, model: LLMConnection, script: Script) -> None:
    client.force_login(owner)
    base = f"/p/{model.project.slug}/metrics/"
    begun = client.post(base, {"campaign": "", "seed": "", "llm_connection": str(model.pk)})
    assert "Language model rules" in client.get(begun.headers["location"]).content.decode()
    induction = done(Induction.objects.get())
    assert induction.state == "succeeded", induction.error
    assert script.keys == {KEY}, "the model is asked with its key, and the child has none"
    assert induction.metrics.filter(name=TONE, definition=f"Good: {TONE}.").exists()
    assert Aspect.objects.count() == 32
    said = {comment["text"] for comment in comments(8)}
    assert set(Aspect.objects.values_list("feedback", flat=True)) <= said
    assert MetricVerdict.objects.exclude(sign=0).filter(reason="The reply says so.").exists()
    page = client.get(begun.headers["location"]).content.decode()
    assert "Language model rules" in page and "names, definitions and reasons are the model" in page
    metric = induction.metrics.get(name=TONE)
    assert "The reply says so." in client.get(f"{base}{metric.pk}/").content.decode()
    assert KEY not in json.dumps(induction.result)


def test_what_failed_is_listed_and_asked_again(
    client: Client, owner: User, model: LLMConnection, script: Script
) -> None:
    bad = Comment.objects.order_by("pk").first()
    assert bad is not None

    def spoil(body: Body) -> Reply:
        if kind(body) == "ground" and json.dumps(bad.text) in data(body) and "desk-0" in data(body):
            return json.dumps({"points": [{"feedback": "It stole the lamp.", "sign": -1, "step": 1}]})
        return answer(body)

    script.answer = spoil
    induction = done(services.start_induction(project=model.project, llm_connection=model))
    assert induction.state == "succeeded", induction.error
    failed = induction.result["failed"]
    assert str(bad.pk) in {failure["comment"] for failure in failed}
    assert not Aspect.objects.filter(comment=bad).exists()
    client.force_login(owner)
    page = client.get(f"/p/{model.project.slug}/metrics/inductions/{induction.pk}/").content.decode()
    assert f"comment {bad.pk}" in page and "Retry failed questions" in page
    assert "stole" not in page
    script.answer, before = answer, len(script.asked)
    client.post(f"/p/{model.project.slug}/metrics/inductions/{induction.pk}/judge/")
    done(induction)
    assert induction.result["failed"] == []
    assert Aspect.objects.filter(comment=bad, metric__name=TONE).exists()
    assert sum(kind(body) == "ground" for body in script.asked[before:]) == len(failed)


def test_a_model_that_fails_midway_keeps_what_was_paid_for(model: LLMConnection, script: Script) -> None:
    count = 0

    def reply(body: Body) -> Reply:
        nonlocal count
        count += 1
        return answer(body) if count <= 15 else (401, {"error": {"message": "No more credit."}})

    script.answer = reply
    induction = done(services.start_induction(project=model.project, llm_connection=model))
    assert induction.state == "failed" and "refused the key" in induction.error
    assert "No more credit." in induction.error and KEY not in induction.error
    assert CachedCompletion.objects.count() == 15
    script.answer, before = answer, len(script.asked)
    assert done(services.start_induction(project=model.project, llm_connection=model)).state == "succeeded"
    assert sum(kind(body) == "ground" for body in script.asked[before:]) == 32 - 15


def test_a_comment_s_words_leave_with_it(model: LLMConnection) -> None:
    done(services.start_induction(project=model.project, llm_connection=model))
    comment = Comment.objects.order_by("pk").last()
    assert comment is not None
    kept, pk = CachedCompletion.objects.count(), comment.pk
    comment.delete()
    assert CachedCompletion.objects.count() == kept - 1
    assert not CachedCompletion.objects.filter(comment=pk).exists()


def test_what_people_decide_is_judged_by_the_model(model: LLMConnection, owner: User, script: Script) -> None:
    induction = done(services.start_induction(project=model.project, llm_connection=model))
    metric = induction.metrics.get(name=TONE)
    other = induction.metrics.exclude(pk=metric.pk).first()
    if other is not None:
        services.reject_metric(metric=other, by=owner)
        assert done(induction).state == "succeeded", induction.error
        services.restore_metric(metric=other, by=owner)
        assert done(induction).state == "succeeded", induction.error
        services.merge_metrics(metric=other, into=metric, by=owner)
        assert done(induction).state == "succeeded", induction.error
    points = list(metric.aspects.filter(feedback__icontains="order").values_list("pk", flat=True))
    new = services.split_metric(metric=metric, aspects=points, name="Looks things up", by=owner)
    assert done(induction).state == "succeeded", induction.error
    assert any("Looks things up" in data(body) for body in script.asked if kind(body) == "judge")
    assert new.verdicts.count() == 16


def test_without_its_model_it_says_so(model: LLMConnection) -> None:
    induction = services.start_induction(project=model.project, llm_connection=model)
    delete_llm_connection(llm_connection=model, by=None)
    done(induction)
    assert induction.state == "failed" and "was deleted" in induction.error
    assert induction.engine_name == "Language model (deleted)"


def test_the_command_knows_it_by_name(model: LLMConnection) -> None:
    with pytest.raises(CommandError, match=r"desk has no LLM connection named nobody \(existing: rules\)"):
        call_command("induce_metrics", model.project.slug, "--language-model", "nobody")
