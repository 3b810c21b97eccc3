"""Who gets in where: one line for every URL of the installation. A URL that is missing here fails the test.

For each: no one signed in is sent to the login (or answered 401), a stranger gets 404, a member without the role 403,
and everything of another project is 404 whoever asks.
"""

import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from django.conf import settings
from django.core.files.base import ContentFile
from django.core.files.storage import storages
from django.http import FileResponse
from django.test import Client, override_settings
from django.urls import URLPattern, URLResolver, get_resolver

from apps.accounts.account_links import Purpose, show_link
from apps.accounts.invitations import invite
from apps.accounts.models import ApiKey, Membership, Project, Role, Scope, User
from apps.accounts.services import create_api_key
from apps.annotation.models import Annotation, Annotator, Assignment, Campaign, Item, ItemTrajectory
from apps.config.api import api
from apps.core.jobs.job_queue import JobState
from apps.datasets.models import Export
from apps.judges.models import Judge, JudgeRun
from apps.llm.models import LLMConnection
from apps.metrics.models import Induction, Metric
from apps.monitoring.models import Alert
from apps.rewards.models import Endpoint, EndpointRevision, Release, ScoreSample
from apps.rewards.serving.app import application as rewards
from apps.rubrics.services import CriterionDraft, save_rubric
from apps.training.models import Evaluation, RewardModel, TrainingRun
from apps.trajectories.attachments import file_name
from apps.trajectories.models import Attachment, Import, SavedFilter, Trajectory
from apps.trajectories.services import import_trajectories
from apps.webhooks.models import Delivery, Webhook
from tests.config.tables import (
    ANYBODY,
    BODIES,
    CALLS,
    HERS,
    NOTHING,
    NOTHING_THERE,
    OWN,
    PAGES,
    RECEIVES,
    REWARDS,
    REWARDS_FOR_ANYBODY,
    ROLES,
    SIGNED_IN,
    WEB_FOR_ANYBODY,
    WEB_PASSED_ON,
)
from tests.datasets.feedback import frozen_nothing
from tests.factories import make_member
from tests.trajectories.conftest import lines, record
from tests.trajectories.test_views import PNG
from tests.worlds import home_settings, rows_of_a_module


def _patterns(resolver: URLResolver, before: str = "") -> Iterator[tuple[str, URLPattern]]:
    for pattern in resolver.url_patterns:
        path = before + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from _patterns(pattern, path)
        else:
            yield path, pattern


def test_every_url_is_in_the_tables() -> None:
    paths = {path for path, _ in _patterns(get_resolver())} - NOTHING_THERE - RECEIVES
    assert {path for path in paths if not path.startswith("api/")} == set(PAGES)
    assert {path for path in paths if path.startswith("api/")} == {path for _, path in CALLS}
    operations = {
        (method, f"api/v1{path}".translate(str.maketrans("{}", "<>")))
        for _, router in api._routers
        for path, view in router.path_operations.items()
        for operation in view.operations
        for method in operation.methods
    }
    documents = {("GET", "api/v1/openapi.json"), ("GET", "api/v1/docs")}
    assert operations | documents == set(CALLS)
    assert {route.path for route in rewards.app.routes} == REWARDS | REWARDS_FOR_ANYBODY  # type: ignore[attr-defined]


def test_the_web_process_adds_nothing_else() -> None:
    from apps.config.asgi import application

    paths = {route.path for route in application.app.app.routes}  # type: ignore[attr-defined]
    assert paths == WEB_FOR_ANYBODY | WEB_PASSED_ON | {""}


@dataclass
class World:
    """One of everything in a project. names: what stands in a path, by the part of the path before it."""

    project: Project
    people: dict[str, User]
    names: dict[str, Any]


def make_world(slug: str) -> World:
    project = Project.objects.create(slug=slug, name=slug)
    people = {role.value: make_member(project, f"{role.value}@{slug}.example", role) for role in ROLES}
    import_trajectories(
        project=project, stream=io.BytesIO(lines(record(1), record(2))), format="openai", by=None
    )
    first, second = Trajectory.objects.filter(project=project).order_by("pk")
    campaign = Campaign.objects.create(project=project, name="All", feedback_types=["pairwise"])
    item = Item.objects.create(campaign=campaign, task=first.task, key="one", overlap=1, claimed_count=1)
    for position, row in enumerate((first, second)):
        ItemTrajectory.objects.create(item=item, trajectory=row, position=position)
    annotator = Annotator.objects.create(project=project, user=people["annotator"], name="ann")
    held = Assignment.objects.create(item=item, annotator=annotator, state="submitted", draft={})
    example = Item.objects.create(
        campaign=campaign, task=first.task, key="two", overlap=0, purpose=Item.Purpose.EXAMPLE
    )
    ItemTrajectory.objects.create(item=example, trajectory=first, position=0)
    decided = Assignment.objects.create(
        item=example, annotator=annotator, is_adjudication=True, state="submitted"
    )
    Annotation.objects.create(assignment=decided)
    dataset_version = frozen_nothing(project)
    run = TrainingRun.objects.create(
        project=project,
        dataset_version=dataset_version,
        recipe_name="bradley-terry",
        recipe={},
        model_name="first",
    )
    model = RewardModel.objects.create(
        project=project, name="first", version=1, artifact="models/none", manifest={}
    )
    evaluation = Evaluation.objects.create(model=model, source="first@1", report={})
    job = Import.objects.create(project=project, filename="a", file="uploads/none", format="openai")
    attachment = Attachment.objects.create(
        project=project, sha256=slug[0].encode().hex() * 32, media_type="image/png", size=1
    )
    storages["artifacts"].save(file_name(project.pk, attachment.sha256), ContentFile(PNG))
    seen = first.steps.all()[0]
    seen.message = [*seen.message, {"type": "image", "source": f"sha256:{attachment.sha256}"}]
    seen.save()
    endpoint = Endpoint.objects.create(project=project, name=f"{slug}-reward")
    active, tried = (
        EndpointRevision.objects.create(endpoint=endpoint, number=n, spec=NOTHING) for n in (1, 2)
    )
    Endpoint.objects.filter(pk=endpoint.pk).update(active=active)
    Release.objects.create(endpoint=endpoint, revision=tried, against=active, stage="canary", share=0.5)
    induction = Induction.objects.create(project=project, state=JobState.SUCCEEDED)
    sample = ScoreSample.objects.create(
        endpoint=endpoint, version=1, caller="tsk_1", item={"text": "a"}, result={"reward": 1.0}
    )
    numbers = dict.fromkeys(("value", "baseline", "limit", "margin", "count"), 1)
    alert = Alert.objects.create(endpoint=endpoint, version=1, rule="r", measure="uncertain", **numbers)
    llm_connection = LLMConnection.objects.create(
        project=project, name="judge", base_url="http://127.0.0.1:9/v1", model="m"
    )
    judge = Judge.objects.create(project=project, name="all", llm_connection=llm_connection, mode="compare")
    judge_run = JudgeRun.objects.create(judge=judge, campaign=campaign, prompt=1)
    webhook = Webhook.objects.create(project=project, url="https://example.org/", events=["run.finished"])
    export = Export.objects.create(
        project=project, format="csv", artifact=f"exports/{slug}.csv", state=JobState.SUCCEEDED
    )
    storages["artifacts"].save(export.artifact, ContentFile(b"x"))
    invitation, token = invite(project=project, role=Role.ANNOTATOR, by=people["owner"])
    key = (
        ApiKey.objects.filter(project=project).first()
        or create_api_key(project=project, scopes=["reward"], by=None)[0]
    )
    return World(
        project,
        people,
        {
            "invitations": invitation.pk,
            "join": token,
            "link": show_link(user=people["annotator"], purpose=Purpose.PASSWORD, by=people["owner"])[1],
            "people": Membership.objects.get(user=people["annotator"]).pk,
            "keys": key.pk,
            "accounts": key.owner_service_account_id,
            "exports": export.pk,
            "samples": sample.pk,
            "webhooks": webhook.pk,
            "llm-connections": llm_connection.pk,
            "judges": judge.pk,
            "judge-runs": judge_run.pk,
            "deliveries": Delivery.objects.create(webhook=webhook, type="test", data={}).pk,
            "imports": job.pk,
            "annotators": annotator.pk,
            "trajectories": first.pk,
            "compare": second.pk,
            "tasks": first.task_id,
            "filters": SavedFilter.objects.create(project=project, name="a", query="agent=a").pk,
            "campaigns": campaign.pk,
            "rubrics": save_rubric(project=project, name="Good", criteria=[CriterionDraft(name="polite")]).pk,
            "inductions": induction.pk,
            "metrics": Metric.objects.create(induction=induction, position=0, name="polite").pk,
            "active-learning": campaign.pk,
            "reasons": item.pk,
            "trajectory-reasons": first.pk,
            "alerts": alert.pk,
            "of": f"{slug}-reward",
            "items": held.pk,
            "judged": item.pk,
            "examples": example.pk,
            "assignments": held.pk,
            "datasets": dataset_version.pk,
            "runs": run.pk,
            "models": model.pk,
            "evaluations": evaluation.pk,
            "attachments": attachment.sha256,
            "endpoints": f"{slug}-reward",
            "snapshot": "first@1",
        },
    )


# Of the people of `worlds`, by their key: to sign in took a third of this file's time.
_sessions: dict[int, str] = {}


@pytest.fixture(scope="module")
def worlds(
    django_db_setup: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[World, World]]:
    """Two of them, once for this file: what a test changes in them is rolled back after it."""
    home = override_settings(**home_settings(tmp_path_factory.mktemp("home")))
    with home, rows_of_a_module(django_db_blocker):
        desk, elsewhere = make_world("desk"), make_world("elsewhere")
        for user in (*desk.people.values(), *elsewhere.people.values()):
            _sessions[user.pk] = _session(user)
        yield desk, elsewhere


def _session(user: User) -> str:
    client = Client()
    client.force_login(user)
    return client.cookies[settings.SESSION_COOKIE_NAME].value


def filled(path: str, names: dict[str, Any], slug: str) -> str:
    """The path with something of the world in every place."""
    parts = path.split("/")
    out = []
    for index, part in enumerate(parts):
        before = next((each for each in reversed(parts[:index]) if not each.startswith("<")), "")
        if part.startswith("<slug:slug>") or part == "<slug>":
            part = slug
        elif part == "<name>":
            part = str(names["snapshot" if before == "datasets" else "endpoints"])
        elif part.startswith(("<int:pk>", "<int:other>", "<slug:name>", "<str:sha256>", "<str:token>")):
            part = str(names[before])
        elif part.startswith("<"):
            part = {
                "<slug:provider_id>": "sso",
                "<int:index>": "0",
                "<str:how>": "skip",
                "<str:mark>": "of-somebody-else",
                "<slug:format>": "trl",
            }[part]
        out.append(part)
    return "/" + "/".join(out)


def _status(client: Client, method: str, path: str) -> int:
    client.raise_request_exception = False
    answer = client.generic(method, path)
    if isinstance(answer, FileResponse):
        b"".join(answer.streaming_content)  # type: ignore[arg-type]
        for close in answer._resource_closers:
            close()
    where = answer.headers.get("Location", "")
    return 401 if answer.status_code == 302 and where.startswith("/login") else answer.status_code


def _signed_in(user: User | None) -> Client:
    client = Client()
    if user is not None:
        client.cookies[settings.SESSION_COOKIE_NAME] = _sessions[user.pk]
    return client


@pytest.mark.parametrize("path", PAGES)
def test_a_page_opens_to_those_it_is_for(path: str, worlds: tuple[World, World], db: None) -> None:
    method, least = PAGES[path]
    desk, other = worlds
    here = filled(path, desk.names, "desk")
    if path != "logout":
        assert (_status(_signed_in(None), method, here) == 401) is (least != ANYBODY)
    if path.startswith("oidc/"):  # no one set one up; tests/accounts/test_sign_on.py does
        assert _status(_signed_in(None), method, here) == 404
        return
    if least == OWN:
        assert _status(_signed_in(desk.people["annotator"]), method, here) == 404
        return
    if least in (ANYBODY, SIGNED_IN):  # 400: what this installation lacks
        assert _status(_signed_in(desk.people["annotator"]), method, here) in (200, 302, 400, 401)
        return
    assert _status(_signed_in(other.people["owner"]), method, here) == 404
    foreign = filled(path, other.names, "desk")
    for role in ROLES:
        client = _signed_in(desk.people[role.value])
        if least == HERS:
            may = role is Role.ANNOTATOR
            refusal = 404
        else:
            may, refusal = role.includes(Role(least)), 403
        # What is refused changes nothing, so everyone who may not goes before those who may.
        if not may:
            assert _status(client, method, here) == refusal, role
        else:
            if foreign != here:
                assert _status(client, method, foreign) == 404, role
            if role in (least, Role.OWNER, Role.ANNOTATOR):
                status = _status(client, method, here)
                assert status not in (401, 403, 405) and status < 500, (role, status)
                if method == "GET":  # 400: a part of a page wants to know which
                    assert status in (200, 302, 400), (role, status)


def _key(project: Project, scopes: list[str]) -> str:
    return create_api_key(project=project, scopes=scopes, by=None)[1]


@pytest.mark.parametrize(("method", "path"), CALLS)
def test_a_call_needs_a_key_of_the_project_with_the_scope(
    method: str, path: str, worlds: tuple[World, World], db: None
) -> None:
    scope = CALLS[method, path]
    desk, other = worlds
    here = filled(path, desk.names, "desk")
    client = Client(raise_request_exception=False)

    def status(secret: str | None, where: str = here) -> int:
        headers = {"Authorization": f"Bearer {secret}"} if secret else {}
        body = json.dumps(BODIES.get(path.rpartition("/")[2], {})) if method != "GET" else ""
        body = body.replace("HERE", str(desk.names["trajectories"]))
        answer = client.generic(method, where, body, content_type="application/json", headers=headers)
        return answer.status_code

    if scope == ANYBODY:
        assert status(None) == 200
        return
    everything = [each.value for each in Scope]
    assert status(None) == status("tsk_00000000_wrong") == 401
    assert status(_key(other.project, everything)) == 404
    assert status(_key(desk.project, [each for each in everything if each != scope])) == 403
    foreign = filled(path, other.names, "desk")
    if "<int:pk>" in path or "/endpoints/<name>" in path:
        assert status(_key(desk.project, everything), foreign) in (404, 409, 422)
    assert status(_key(desk.project, [scope])) not in (401, 403, 404, 405, 500)
