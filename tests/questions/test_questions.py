"""A question from the form to tags, campaigns and rubrics, by the child process and a server that answers by rules."""

import json
import re

import pytest
from django.test import Client

from apps.accounts.models import AuditEvent, Project, User
from apps.core.errors import Conflict, DomainError
from apps.core.jobs import job_queue
from apps.llm.models import LLMConnection, Spending
from apps.llm.services import delete_llm_connection
from apps.questions.models import QuestionAnswer, TrajectoryQuestion
from apps.questions.selectors import count_categories, estimate_question
from apps.questions.services import ask_question, delete_question, retry_failed_answers, tag_category
from apps.questions.tasks import advance_questions
from apps.rubrics.models import Rubric
from apps.trajectories.filter_queries import filter_trajectories
from apps.trajectories.models import Trajectory
from tests.questions.conftest import question_answer
from tests.workers.llm.scripted import Script

pytestmark = pytest.mark.django_db(transaction=True)
TEXT = "Which parcels did not arrive?"


def answered(connection: LLMConnection, **given: object) -> TrajectoryQuestion:
    question = ask_question(
        project=connection.project,
        text=TEXT,
        llm_connection=connection,
        **given,  # type: ignore[arg-type]
    )
    advance_questions()
    question.refresh_from_db()
    return question


@pytest.mark.real_children
def test_every_trajectory_is_answered_with_citations_and_sorted(
    connection: LLMConnection, script: Script
) -> None:
    question = answered(connection)
    assert question.state == "succeeded", question.error
    answers = list(question.answers.select_related("trajectory"))
    assert len(answers) == question.matching == 13
    for answer in answers:
        failed = [
            step.index for step in answer.trajectory.steps.all() if "failed" in json.dumps(step.observation)
        ]
        if failed:
            assert answer.steps == failed
    lost, sent, no_parcel = count_categories(question)
    assert (lost.name, lost.count, sent.name, sent.count) == ("Parcels lost", 8, "Parcels sent", 4)
    assert (no_parcel.place, no_parcel.count) == (None, 1)
    assert lost.interval is None, "all of the trajectories were asked about"
    assert lost.share == pytest.approx(8 / 13)
    assert script.keys == {"sk-canary"}
    assert question.result["usage"]["calls"] == len(script.asked) == 14
    assert Spending.objects.get().purpose == "questions"
    event = AuditEvent.objects.get(verb="question.asked")
    assert event.data["trajectories"] == 13


def test_a_sample_is_drawn_at_random_and_shares_have_an_interval(connection: LLMConnection) -> None:
    question = answered(connection, sample=9)
    assert (question.matching, question.answers.count()) == (13, 9)
    drawn = list(question.answers.values_list("trajectory_id", flat=True))
    newest = list(Trajectory.objects.order_by("-pk").values_list("pk", flat=True)[:9])
    assert set(drawn) != set(newest) and drawn != sorted(drawn)
    counts = count_categories(question)
    assert sum(found.count for found in counts) == 9
    for found in counts:
        assert found.interval is not None and found.interval[0] < found.share < found.interval[1]


def test_only_what_passes_the_filter_is_asked_about(connection: LLMConnection, script: Script) -> None:
    first = Trajectory.objects.order_by("pk").first()
    assert first is not None
    question = answered(connection, query=f"task={first.task.external_id}")
    assert question.answers.get().trajectory == first and question.matching == 1
    assert [category["name"] for category in question.result["categories"]] == ["all parcels arrive"]
    assert len(script.asked) == 1, "one label needs no sorting"


@pytest.mark.parametrize(
    ("given", "pointer"),
    [
        ({"query": "task=none"}, "/filter"),
        ({"query": "colour=red"}, "/filter"),
        ({"sample": 0}, "/sample"),
        ({"sample": 2001}, "/sample"),
        ({"max_categories": 1}, "/max_categories"),
        ({"text": "?"}, "/text"),
    ],
)
def test_what_cannot_be_asked_is_refused(
    connection: LLMConnection, given: dict[str, object], pointer: str
) -> None:
    with pytest.raises(DomainError) as refused:
        ask_question(project=connection.project, **({"text": TEXT, "llm_connection": connection} | given))  # type: ignore[arg-type]
    assert refused.value.pointer == pointer
    assert not TrajectoryQuestion.objects.exists()


def test_bad_answers_are_problems_and_are_retried(connection: LLMConnection, script: Script) -> None:
    """A step that does not exist, and a label without a step, are not accepted."""

    def wrong(body: dict[str, object]) -> str:
        answer = json.loads(question_answer(body))
        if "steps" in answer and "2 parcels" in answer["explanation"]:
            answer["steps"] = [99]
        if "steps" in answer and "1 parcels" in answer["explanation"]:
            answer["steps"] = []
        return json.dumps(answer)

    script.answer = wrong
    question = answered(connection)
    assert question.state == "succeeded"
    failed = question.answers.filter(state="failed")
    assert failed.count() == 8
    problems = " ".join(failed.values_list("problem", flat=True))
    assert "There is no step 99" in problems and "needs at least one step" in problems
    script.answer = question_answer
    asked = len(script.asked)
    retry_failed_answers(question=question, by=None)
    advance_questions()
    question.refresh_from_db()
    assert (question.state, question.answers.filter(state="done").count()) == ("succeeded", 13)
    assert len(script.asked) == asked + 8 + 1, "answers that were accepted are not asked for again"
    with pytest.raises(Conflict, match="nothing to retry"):
        retry_failed_answers(question=question, by=None)


def test_a_refused_key_fails_the_question_in_a_sentence(connection: LLMConnection, script: Script) -> None:
    script.answer = lambda body: (401, {"error": {"message": "no such key"}})
    question = answered(connection)
    assert question.state == "failed" and "401" in question.error
    assert not question.result.get("categories")
    script.answer = question_answer
    retry_failed_answers(question=question, by=None)
    advance_questions()
    question.refresh_from_db()
    assert question.state == "succeeded"


def test_a_deleted_connection_is_named(connection: LLMConnection, project: Project) -> None:
    question = ask_question(project=project, text=TEXT, llm_connection=connection)
    delete_llm_connection(llm_connection=connection, by=None)
    advance_questions()
    question.refresh_from_db()
    assert question.state == "failed" and "connection was deleted" in question.error
    with pytest.raises(Conflict, match="another one"):
        retry_failed_answers(question=question, by=None)


def test_a_cancelled_question_keeps_its_answers(connection: LLMConnection, script: Script) -> None:
    question = ask_question(project=connection.project, text=TEXT, llm_connection=connection)
    with pytest.raises(Conflict, match="Cancel it first"):
        delete_question(question=question, by=None)
    job_queue.request_cancel(question)
    advance_questions()
    question.refresh_from_db()
    assert question.state == "cancelled" and not script.asked
    delete_question(question=question, by=None)
    assert not QuestionAnswer.objects.exists()


def test_a_category_becomes_a_tag(connection: LLMConnection, project: Project) -> None:
    question = answered(connection)
    assert tag_category(question=question, category=0, by=None) == ("Parcels lost", 8)
    assert tag_category(question=question, category=0, by=None) == ("Parcels lost", 0)
    tagged = filter_trajectories(project, {"tag": "Parcels lost"})
    lost = question.answers.filter(category=0).values_list("trajectory_id", flat=True)
    assert set(tagged.values_list("pk", flat=True)) == set(lost)
    with pytest.raises(DomainError, match="no category 7"):
        tag_category(question=question, category=7, by=None)


def test_an_estimate_counts_trajectories_tokens_and_money(
    connection: LLMConnection, project: Project
) -> None:
    found = estimate_question(project=project, llm_connection=connection, query="", sample=5)
    assert (found.matching, found.trajectories, found.cost) == (13, 5, None)
    connection.prompt_price = 1_000_000  # a token costs 1
    found = estimate_question(project=project, llm_connection=connection, query="", sample=5)
    assert found.cost is not None and 0 < found.cost < found.tokens


def test_pages_from_the_form_to_a_rubric(client: Client, connection: LLMConnection, researcher: User) -> None:
    client.force_login(researcher)
    base = f"/p/{connection.project.slug}/questions/"
    assert "No questions yet" in client.get(base).content.decode()
    assert 'value="tag=late"' in client.get(f"{base}?tag=late").content.decode()
    form = {"text": TEXT, "llm_connection": connection.pk, "sample": 13, "max_categories": 8, "query": ""}
    wrong = client.post(base, form | {"query": "colour=red"})
    assert wrong.status_code == 422 and "There is no filter" in wrong.content.decode()
    estimate = client.post(base, form | {"estimate": "1"}).content.decode()
    assert "13 of 13" in estimate and not TrajectoryQuestion.objects.exists()
    asked = client.post(base, form)
    page = asked.headers["location"]
    assert "hx-trigger" in client.get(page).content.decode()
    advance_questions()
    assert client.get(f"{page}status/").headers["HX-Refresh"] == "true"
    shown = client.get(page).content.decode()
    assert "Parcels lost" in shown and "61.5" in shown
    link = re.search(r'href="([^"#]+#t\d+-s\d+)"', shown)
    assert link and client.get(link[1]).status_code == 200
    listed = client.get(f"{page}answers/?category=0").content.decode()
    assert listed.count("parcels failed.") == 8
    assert client.get(f"{page}answers/?category={'9' * 5000}").status_code == 400
    assert "No parcel is sent." in client.get(f"{page}answers/").content.decode()
    tagged = client.post(f"{page}tag/", {"category": 0}, follow=True).content.decode()
    assert "8 trajectories" in tagged and "?tag=Parcels+lost" in tagged
    campaign = client.post(f"{page}tag/", {"category": 1, "campaign": "1"})
    assert campaign.headers["location"].endswith("/campaigns/new/?tag=Parcels+sent")
    rubric = client.post(f"{page}rubric/", {"name": "Parcels"}, follow=True)
    assert rubric.status_code == 200
    names = [entry.criterion.name for entry in Rubric.objects.get().entries.select_related("criterion")]
    assert names == ["Parcels lost", "Parcels sent"]
    client.post(f"{page}delete/")
    assert (
        not TrajectoryQuestion.objects.exists()
        and Trajectory.objects.filter(tags__contains=["Parcels lost"]).exists()
    )


def test_without_a_connection_the_page_says_what_is_needed(
    client: Client, project: Project, researcher: User
) -> None:
    client.force_login(researcher)
    assert "need an LLM connection" in client.get(f"/p/{project.slug}/questions/").content.decode()
