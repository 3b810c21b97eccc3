"""The work page by plain forms and by htmx: hers alone, the coin both ways, nothing lost."""

import re
import uuid
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from apps.accounts.models import User
from apps.annotation import services
from apps.annotation.models import Annotation, Assignment, Campaign, Comment, Preference, StepLabelSet
from apps.trajectories.models import Task
from tests.annotation import rows

HTMX = {"HX-Request": "true"}


@pytest.fixture
def assignment(campaign: Campaign, annotator: User) -> Assignment:
    rows.pair(campaign, "one")
    return rows.leased(campaign, annotator)


@pytest.fixture
def annotator_client(client: Client, annotator: User) -> Client:
    client.force_login(annotator)
    return client


def url(name: str, *args: Any) -> str:
    return reverse(f"annotation:{name}", args=["desk", *args])


def form(**fields: str) -> dict[str, str]:
    return {"idempotency_key": str(uuid.uuid4()), **fields}


def test_the_page_shows_both_runs_and_a_form(
    annotator_client: Client, campaign: Campaign, assignment: Assignment
) -> None:
    page = annotator_client.get(url("campaign-work", campaign.pk)).content.decode()
    assert "one <mark>well</mark>" in page and "one <mark>badly</mark>" in page and "Do one." in page
    assert "1 shared step" in page
    assert re.search(r'name="idempotency_key" value="[0-9a-f-]{36}"', page)


def test_names_and_outcomes_are_hidden_or_shown(
    annotator_client: Client, campaign: Campaign, assignment: Assignment
) -> None:
    assignment.item.trajectories.update(agent_name="fox-9000", outcome_reward=0.125)
    assert "fox-9000" not in annotator_client.get(url("campaign-work", campaign.pk)).content.decode()
    Campaign.objects.update(blind_agents=False, show_outcome=True)
    page = annotator_client.get(url("campaign-work", campaign.pk)).content.decode()
    assert "fox-9000" in page and "0.125" in page and "succeeded" in page


@pytest.mark.parametrize(("swapped", "choice"), [(False, "a"), (True, "b")])
def test_a_choice_for_the_left_is_for_what_stood_there(
    annotator_client: Client, assignment: Assignment, swapped: bool, choice: str
) -> None:
    Assignment.objects.update(swapped=swapped)
    page = annotator_client.get(url("campaign-work", assignment.item.campaign_id)).content.decode()
    left = re.search(r'data-side="left"[^>]*>\s*<article[^>]*id="t(\d+)-', page)
    annotator_client.post(url("assignment-submit", assignment.pk), form(choice="left-3"))
    said = Preference.objects.get()
    assert (said.choice, said.strength) == (choice, 3)
    position = {"a": 0, "b": 1}[said.choice]
    assert left is not None
    assert assignment.item.places.get(position=position).trajectory_id == int(left[1])


def test_a_plain_form_is_redirected_and_an_htmx_one_gets_the_next_item(
    annotator_client: Client, campaign: Campaign, assignment: Assignment
) -> None:
    rows.pair(campaign, "two")
    response = annotator_client.post(url("assignment-submit", assignment.pk), form(choice="tie"))
    assert response.headers["Location"] == url("campaign-work", campaign.pk)
    annotator_client.get(url("campaign-work", campaign.pk))
    second = Assignment.objects.get(state="locked")
    response = annotator_client.post(
        url("assignment-submit", second.pk), form(choice="both_bad"), headers=HTMX
    )
    assert b"All done" in response.content and response.headers["HX-Trigger-After-Settle"] == "work:next"
    assert Annotation.objects.count() == 2


def test_the_back_button_sends_nothing_twice(annotator_client: Client, assignment: Assignment) -> None:
    again = form(choice="tie")
    for _ in range(2):
        assert annotator_client.post(url("assignment-submit", assignment.pk), again).status_code == 302
    assert Annotation.objects.count() == 1


def test_too_little_said_keeps_what_was_written(annotator_client: Client, assignment: Assignment) -> None:
    posted = form(**{"comment-0-text": "kept words", "comment-0-on": "right"})
    response = annotator_client.post(url("assignment-submit", assignment.pk), posted)
    assert response.status_code == 400
    assert b"Choose an answer first" in response.content and b"kept words" in response.content
    response = annotator_client.post(url("assignment-submit", assignment.pk), posted, headers=HTMX)
    assert response.status_code == 400 and b"data-error" in response.content
    assert not Annotation.objects.exists()


TOOLS = [
    {
        "name": "find",
        "description": "Finds <it>.",
        "input_schema": {
            "type": "object",
            "properties": {"id": {"type": "integer", "description": "of the order"}},
            "required": ["id"],
        },
    }
]


def test_a_correction_without_a_script(annotator_client: Client, annotator: User, task: Task) -> None:
    asked = services.create_campaign(project=task.project, name="Steps", feedback_types=["step"])
    run = rows.trajectory(task, "one", texts=["one", "two"], metadata={"tools": TOOLS})
    services.add_items(campaign=asked, items=[services.ItemSpec(trajectories=[run])])
    page = annotator_client.get(url("campaign-work", asked.pk)).content.decode()
    assert "Tools of the agent (1)" in page and "Finds &lt;it&gt;." in page and "of the order" in page
    assert page.count('name="step-left-0-tool"') == page.count('name="step-left-1-arguments"') == 1
    held = Assignment.objects.get()
    said = {"step-left-1": "bad", "step-left-1-tool": "find", "step-left-1-arguments": "{}"}
    response = annotator_client.post(url("assignment-submit", held.pk), form(**said))
    assert response.status_code == 400
    refused = response.content.decode()
    assert "The arguments of find do not fit its parameters: id is missing." in refused
    assert '<option value="find" selected>find</option>' in refused and ">{}</textarea>" in refused
    annotator_client.post(
        url("assignment-submit", held.pk), form(**said | {"step-left-1-arguments": '{"id": 7}'})
    )
    call = {"name": "find", "arguments": {"id": 7}}
    assert StepLabelSet.objects.get().corrections == {"1": {"tool_calls": [call]}}
    again = annotator_client.get(url("assignment-detail", held.pk)).content.decode()
    assert (
        '<option value="find" selected>find</option>' in again and "{&quot;id&quot;: 7}</textarea>" in again
    )


def test_tools_of_strangers_are_shown_as_text_and_offered_as_they_are(
    annotator_client: Client, annotator: User, task: Task
) -> None:
    """A name keeps its spaces, which an option without a value loses."""
    hostile = '"><script>alert(1)</script>  two'
    tool = {"name": hostile, "description": hostile, "input_schema": {
        "required": [hostile], "properties": {hostile: {"type": hostile, "description": hostile}}}}  # fmt: skip
    asked = services.create_campaign(project=task.project, name="Steps", feedback_types=["step"])
    run = rows.trajectory(task, "one", metadata={"tools": [tool]})
    services.add_items(campaign=asked, items=[services.ItemSpec(trajectories=[run])])
    page = annotator_client.get(url("campaign-work", asked.pk)).content.decode()
    assert "<script>alert" not in page
    assert '<option value="&quot;&gt;&lt;script&gt;alert(1)&lt;/script&gt;  two">' in page


def test_a_shared_step_offers_the_tools_of_both(
    annotator_client: Client, annotator: User, task: Task
) -> None:
    asked = services.create_campaign(project=task.project, name="Steps", feedback_types=["step"])
    runs = [
        rows.trajectory(task, texts[-1], texts=texts, tools=tools)
        for texts, tools in ((["Hello.", "one"], ["find", "book"]), (["Hello.", "two"], ["pay", "find"]))
    ]
    services.add_items(campaign=asked, items=[services.ItemSpec(trajectories=runs)])
    assignment = rows.leased(asked, annotator)
    shared = annotator_client.get(url("assignment-rows", assignment.pk) + "?start=prefix", headers=HTMX)
    text = shared.content.decode()
    assert 'name="step-both-0-tool"' in text and '<option value="find">' in text
    assert '<option value="book">' not in text and '<option value="pay">' not in text


def test_another_comment_without_a_script(annotator_client: Client, assignment: Assignment) -> None:
    posted = form(choice="left-1", action="comment", **{"comment-0-text": "first"})
    page = annotator_client.post(
        url("assignment-submit", assignment.pk), posted, follow=True
    ).content.decode()
    assert "first" in page and 'name="comment-1-text"' in page
    posted = form(choice="left-1", **{"comment-0-text": "first", "comment-1-text": "second"})
    annotator_client.post(url("assignment-submit", assignment.pk), posted)
    assert list(Comment.objects.order_by("pk").values_list("text", flat=True)) == ["first", "second"]


def test_a_draft_comes_back(annotator_client: Client, campaign: Campaign, assignment: Assignment) -> None:
    draft = form(choice="right-2", active_seconds="0", **{"comment-0-text": "half a thought"})
    answer = annotator_client.post(url("assignment-draft", assignment.pk), draft).json()
    assignment.refresh_from_db()
    assert assignment.draft_saved_at is not None
    assert answer == {"saved": True, "held": True, "at": assignment.draft_saved_at.isoformat()}
    page = annotator_client.get(url("campaign-work", campaign.pk)).content.decode()
    assert "half a thought" in page
    assert re.search(r'value="right-2"[^>]*checked', page)


def test_an_edit_starts_with_what_was_said_and_is_a_revision(
    annotator_client: Client, assignment: Assignment
) -> None:
    annotator_client.post(
        url("assignment-submit", assignment.pk), form(choice="right-3", **{"comment-0-text": "Well."})
    )
    page = annotator_client.get(url("assignment-detail", assignment.pk)).content.decode()
    assert re.search(r'value="right-3"[^>]*checked', page) and "Well." in page
    response = annotator_client.post(
        url("assignment-submit", assignment.pk), form(choice="tie", again="1"), headers=HTMX
    )
    assert response.headers["HX-Redirect"]
    assert list(Annotation.objects.order_by("revision").values_list("revision", flat=True)) == [1, 2]


def test_skip_and_flag_need_no_script(annotator_client: Client, assignment: Assignment) -> None:
    leave = url("assignment-leave", assignment.pk, "skip")
    assert b"Skip this item" in annotator_client.get(leave).content
    assert annotator_client.post(leave, {"reason": "Too long"}).status_code == 302
    assignment.refresh_from_db()
    assert (assignment.state, assignment.reason) == ("skipped", "Too long")
    annotator_client.post(
        url("assignment-leave", assignment.pk, "flag"), {"reason": "Broken", "words": "step 3 is cut"}
    )
    assignment.refresh_from_db()
    assert (assignment.state, assignment.reason) == ("flagged", "step 3 is cut")
    assert (
        annotator_client.post(url("assignment-leave", assignment.pk, "eat"), {"reason": "x"}).status_code
        == 404
    )


def test_rows_come_in_portions_and_all_at_once_without_a_script(
    annotator_client: Client, campaign: Campaign, annotator: User
) -> None:
    from apps.annotation import services
    from apps.trajectories.models import Task

    task = Task.objects.create(project=campaign.project, external_id="long")
    runs = [
        rows.trajectory(task, side, texts=[f"{side} says {n}." for n in range(30)]) for side in ("fox", "owl")
    ]
    services.add_items(campaign=campaign, items=[services.ItemSpec(trajectories=runs)])
    assignment = rows.leased(campaign, annotator)
    page = annotator_client.get(url("campaign-work", campaign.pk)).content.decode()
    assert "<mark>fox </mark>says 19." in page and "says 20." not in page
    more = annotator_client.get(
        url("assignment-rows", assignment.pk) + "?start=20", headers=HTMX
    ).content.decode()
    assert "<mark>owl </mark>says 20." in more and "says 29." in more and "hx-trigger" not in more
    prefix = annotator_client.get(
        url("assignment-rows", assignment.pk) + "?start=prefix", headers=HTMX
    ).content.decode()
    assert prefix.count("<article") == 1
    assert "says 29." in annotator_client.get(url("campaign-work", campaign.pk) + "?all=1").content.decode()
    assert annotator_client.get(url("assignment-rows", assignment.pk) + "?start=x").status_code == 400


@pytest.mark.parametrize("name", ["assignment-detail", "assignment-rows"])
def test_an_item_is_hers_alone(
    client: Client, assignment: Assignment, other_annotator: User, researcher: User, name: str
) -> None:
    for other in (other_annotator, researcher):
        client.force_login(other)
        assert client.get(url(name, assignment.pk)).status_code == 404


@pytest.mark.parametrize("name", ["assignment-submit", "assignment-draft"])
def test_nobody_else_writes_it(
    client: Client, annotator_client: Client, assignment: Assignment, other_annotator: User, name: str
) -> None:
    assert annotator_client.get(url(name, assignment.pk)).status_code == 405
    client.force_login(other_annotator)
    assert client.post(url(name, assignment.pk), form(choice="tie")).status_code == 404
    assert not Annotation.objects.exists()


def test_strangers_see_nothing(
    client: Client, campaign: Campaign, assignment: Assignment, outsider: User
) -> None:
    client.force_login(outsider)
    for page in (
        url("campaign-work", campaign.pk),
        url("campaign-list-own"),
        url("campaign-list"),
        url("campaign-history", campaign.pk),
    ):
        assert client.get(page).status_code == 404
    client.logout()
    assert client.get(url("campaign-work", campaign.pk)).status_code == 302


@pytest.mark.parametrize("key", ["", "no key"])
def test_a_form_without_a_key_is_refused(annotator_client: Client, assignment: Assignment, key: str) -> None:
    response = annotator_client.post(
        url("assignment-submit", assignment.pk), {"idempotency_key": key, "choice": "tie"}
    )
    assert response.status_code == 400 and not Annotation.objects.exists()


def test_a_paused_campaign_says_so(annotator_client: Client, campaign: Campaign) -> None:
    Campaign.objects.update(state="paused")
    assert b"not open" in annotator_client.get(url("campaign-work", campaign.pk)).content


def test_what_agents_wrote_is_shown_as_text(
    annotator_client: Client, campaign: Campaign, annotator: User
) -> None:
    hostile = "<script>alert(1)</script><img src=x onerror=alert(2)>"
    item = rows.pair(campaign, hostile)
    item.task.instruction = item.task.reference = hostile
    item.task.save()
    Campaign.objects.update(name=hostile, guidelines=hostile)
    assignment = rows.leased(campaign, annotator)
    draft = form(choice="tie", **{"comment-0-text": hostile, "comment-0-quote": '"><script>x</script>'})
    annotator_client.post(url("assignment-draft", assignment.pk), draft)
    pages = [annotator_client.get(url("campaign-work", campaign.pk))]
    annotator_client.post(url("assignment-submit", assignment.pk), draft | form())
    pages += [annotator_client.get(url(name, campaign.pk)) for name in ("campaign-history",)]
    pages += [
        annotator_client.get(url("assignment-detail", assignment.pk)),
        annotator_client.get(url("campaign-list-own")),
    ]
    for page in pages:
        text = page.content.decode()
        assert "<script>alert" not in text and "<img src=x" not in text and '"><script>x' not in text
        assert "&lt;script&gt;" in text
