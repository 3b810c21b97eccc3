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
from ninja.operation import Operation

from apps.accounts.account_links import Purpose, show_link
from apps.accounts.invitations import invite
from apps.accounts.models import ApiKey, Membership, Project, Role, Scope, User
from apps.accounts.new_projects import first_account_token
from apps.accounts.services import create_api_key
from apps.annotation.models import Annotation, Annotator, Assignment, Campaign, Item, ItemTrajectory
from apps.bulk.models import BulkJob
from apps.config.api import api
from apps.connectors.models import Connector, ConnectorRun
from apps.core.http.api_scopes import SCOPES
from apps.core.jobs.job_queue import JobState
from apps.datasets.models import Export, TrajectoryDeletion
from apps.inbox.models import Notification, NotificationEvent
from apps.judges.models import Judge, JudgeRun
from apps.lifecycle.models import ProjectExport
from apps.llm.models import LLMConnection
from apps.metrics.models import Induction, Metric
from apps.monitoring.models import Alert
from apps.questions.models import QuestionAnswer, TrajectoryQuestion
from apps.rewards.models import (
    Endpoint,
    EndpointRevision,
    ModelServer,
    Release,
    ScoreSample,
    ServerReplica,
)
from apps.rewards.serving.app import application as rewards
from apps.rubrics.services import CriterionDraft, save_rubric
from apps.semantic_search.models import ClusterMember, TrajectoryClustering, TrajectoryPassage
from apps.training.models import Evaluation, ModelExport, ModelImport, RewardModel, TrainingRun
from apps.trajectories.attachments import file_name
from apps.trajectories.models import Attachment, Import, SavedView, Trajectory, TrajectoryComment
from apps.trajectories.services import import_trajectories
from apps.webhooks.models import Delivery, Webhook
from tests.config.tables import (
    ANYBODY,
    CALLS,
    CREATORS,
    EMPTY,
    HERS,
    NOTHING,
    NOTHING_THERE,
    OWN,
    PAGES,
    RECEIVES,
    RESULT,
    REWARDS,
    REWARDS_FOR_ANYBODY,
    ROLES,
    SIGNED_IN,
    WEB_FOR_ANYBODY,
    WEB_PASSED_ON,
    body_for,
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


def api_operations() -> dict[tuple[str, str], Operation]:
    """By method and path, as in CALLS."""
    return {
        (method, f"api/v1{path}".translate(str.maketrans("{}", "<>"))): operation
        for _, router in api._routers
        for path, view in router.path_operations.items()
        for operation in view.operations
        for method in operation.methods
    }


def test_every_operation_documents_its_scopes() -> None:
    for call, operation in api_operations().items():
        scope = CALLS[call]
        needed = [scope] if isinstance(scope, str) else [*scope]
        assert (operation.openapi_extra or {}).get(SCOPES) == needed, call


def test_every_url_is_in_the_tables() -> None:
    paths = {path for path, _ in _patterns(get_resolver())} - NOTHING_THERE - RECEIVES
    assert {path for path in paths if not path.startswith("api/")} == set(PAGES)
    assert {path for path in paths if path.startswith("api/")} == {path for _, path in CALLS}
    documents = {("GET", "api/v1/openapi.json"), ("GET", "api/v1/docs")}
    assert set(api_operations()) | documents == set(CALLS)
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
    model_export = ModelExport.objects.create(
        model=model, form="artifact", artifact=f"model-exports/{slug}.tar", state=JobState.SUCCEEDED
    )
    storages["artifacts"].save(model_export.artifact, ContentFile(b"x"))
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
        endpoint=endpoint, version=1, caller="tsk_1", item={"text": "a"}, result=RESULT
    )
    numbers = dict.fromkeys(("value", "baseline", "limit", "margin", "count"), 1)
    server = ModelServer.objects.create(project=project, name=f"{slug}-gpu")
    replica = ServerReplica.objects.create(server=server, address="http://127.0.0.1:9")
    alert = Alert.objects.create(endpoint=endpoint, version=1, rule="r", measure="uncertain", **numbers)
    llm_connection = LLMConnection.objects.create(
        project=project, name="judge", base_url="http://127.0.0.1:9/v1", model="m"
    )
    judge = Judge.objects.create(project=project, name="all", llm_connection=llm_connection, mode="compare")
    model_import = ModelImport.objects.create(project=project, source="hf://org/name", model_name="name")
    judge_run = JudgeRun.objects.create(judge=judge, campaign=campaign, prompt=1)
    webhook = Webhook.objects.create(project=project, url="https://example.org/", events=["run.finished"])
    connector = Connector.objects.create(project=project, name="Traces", kind="langfuse")
    connector_run = ConnectorRun.objects.create(connector=connector, state=JobState.SUCCEEDED)
    bulk_job = BulkJob.objects.create(project=project, work="score", model=model, query="agent=a")
    question = TrajectoryQuestion.objects.create(
        project=project,
        text="Why?",
        llm_connection=llm_connection,
        state=JobState.SUCCEEDED,
        result={"categories": [{"name": "a", "definition": ""}]},
    )
    QuestionAnswer.objects.create(question=question, trajectory=first, explanation="So.", state="done")
    clustering = TrajectoryClustering.objects.create(
        project=project,
        state=JobState.SUCCEEDED,
        result={"clusters": [{"terms": ["a"], "count": 1, "share": 1.0}], "drawn": 1},
    )
    ClusterMember.objects.create(
        clustering=clustering, trajectory=first, cluster=0, x=0.0, y=0.0, distance=0.0
    )
    TrajectoryPassage.objects.create(
        project=project, trajectory=first, first_step=0, last_step=0, embedding=[1.0] + [0.0] * 383
    )
    number = 1_000_000 + project.pk  # of both exports, whose pages call it alike; no sequence gets there
    export = Export.objects.create(
        pk=number, project=project, format="csv", artifact=f"exports/{slug}.csv", state=JobState.SUCCEEDED
    )
    storages["artifacts"].save(export.artifact, ContentFile(b"x"))
    ProjectExport.objects.create(
        pk=number, project=project, artifact=export.artifact, state=JobState.SUCCEEDED
    )
    notification = Notification.objects.create(
        project=project,
        user=people["owner"],
        event=NotificationEvent.JOB_SUCCEEDED,
        key=f"{slug}-1",
        title="Done",
        path=f"/p/{slug}/",
    )
    invitation, token = invite(project=project, role=Role.ANNOTATOR, by=people["owner"])
    key = (
        ApiKey.objects.filter(project=project).first()
        or create_api_key(project=project, scopes=["reward"], by=None)[0]
    )
    comment = TrajectoryComment.objects.create(
        project=project,
        trajectory=first,
        author=people["researcher"],
        service_account_id=key.owner_service_account_id,
        text="x",
    )
    return World(
        project,
        people,
        {
            "comments": comment.pk,
            "invitations": invitation.pk,
            "join": token,
            "start": first_account_token(),
            "link": show_link(user=people["annotator"], purpose=Purpose.PASSWORD, by=people["owner"])[1],
            "people": Membership.objects.get(user=people["annotator"]).pk,
            "keys": key.pk,
            "key": key.prefix,
            "member": people["reviewer"].email,
            "accounts": key.owner_service_account_id,
            "exports": export.pk,
            "samples": sample.pk,
            "webhooks": webhook.pk,
            "bulk": bulk_job.pk,
            "deletions": TrajectoryDeletion.objects.create(project=project, item_count=1).pk,
            "bulk-jobs": bulk_job.pk,
            "questions": question.pk,
            "clusters": clustering.pk,
            "tables": "trajectories",
            "inbox": notification.pk,
            "clusterings": clustering.pk,
            "connectors": connector.pk,
            "connector-runs": connector_run.pk,
            "llm-connections": llm_connection.pk,
            "judges": judge.pk,
            "judge-runs": judge_run.pk,
            "model-imports": model_import.pk,
            "deliveries": Delivery.objects.create(webhook=webhook, type="test", data={}).pk,
            "imports": job.pk,
            "annotators": annotator.pk,
            "trajectories": first.pk,
            "compare": second.pk,
            "tasks": first.task_id,
            "views": SavedView.objects.create(project=project, name="a", query="agent=a").pk,
            "campaigns": campaign.pk,
            "rubrics": save_rubric(project=project, name="Good", criteria=[CriterionDraft(name="polite")]).pk,
            "inductions": induction.pk,
            "metrics": Metric.objects.create(induction=induction, position=0, name="polite").pk,
            "active-learning": campaign.pk,
            "reasons": item.pk,
            "trajectory-reasons": first.pk,
            "trajectory-rewards": first.pk,
            "alerts": alert.pk,
            "of": f"{slug}-reward",
            "items": held.pk,
            "judged": item.pk,
            "examples": example.pk,
            "assignments": held.pk,
            "datasets": dataset_version.pk,
            "runs": run.pk,
            "models": model.pk,
            "model-exports": model_export.pk,
            "evaluations": evaluation.pk,
            "attachments": attachment.sha256,
            "endpoints": f"{slug}-reward",
            "servers": server.name,
            "replicas": replica.pk,
            "snapshot": "first@1",
            "model": f"{model.name}@{model.version}",
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
        elif part == "<path:name>":
            part = {"rubrics": "Good", "campaigns": "All", "judges": "all"}[before]
        elif part == "<email>":
            part = str(names["member"])
        elif part == "<prefix>":
            part = str(names["key"])
        elif path.startswith("api/") and before == "items":
            part = str(names["judged"])  # the item, where the page has an assignment of it
        elif part == "<name>":
            part = str(
                names[
                    {"datasets": "snapshot", "models": "model", "servers": "servers"}.get(before, "endpoints")
                ]
            )
        elif part.startswith(("<int:pk>", "<int:other>", "<slug:name>", "<str:sha256>", "<str:token>")):
            part = str(names[before])
        elif part.startswith("<"):
            part = {
                "<slug:provider_id>": "sso",
                "<int:index>": "0",
                "<int:cluster>": "0",
                "<str:how>": "skip",
                "<str:name>": "tag",
                "<str:mark>": "of-somebody-else",
                "<slug:format>": "trl",
                "<slug:kind>": "langfuse",
                "<int:run>": str(names["connector-runs"]),
                "<int:comment>": str(names["comments"]),
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
    if least == EMPTY:
        assert _status(_signed_in(None), method, here) == 404
        return
    if path != "logout":
        assert (_status(_signed_in(None), method, here) == 401) is (least != ANYBODY)
    if path.startswith("oidc/"):  # no one set one up; tests/accounts/test_sign_on.py does
        assert _status(_signed_in(None), method, here) == 404
        return
    if least == CREATORS:
        assert _status(_signed_in(desk.people["annotator"]), method, here) == 403
        assert _status(_signed_in(desk.people["researcher"]), method, here) in (200, 302)
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
                if (
                    method == "GET"
                ):  # 400: a part of a page wants to know which; 409: a campaign of another type
                    assert status in (200, 302, 400, 409), (role, status)


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
        body = json.dumps(body_for(path)) if method != "GET" else ""
        body = body.replace("HERE", str(desk.names["trajectories"])).replace("MODEL", desk.names["model"])
        answer = client.generic(method, where, body, content_type="application/json", headers=headers)
        for close in answer._resource_closers:  # of files; the client closes what it has read alone
            close()
        return answer.status_code

    if scope == ANYBODY:
        assert status(None) == 200
        return
    everything = [each.value for each in Scope]
    needed = (scope,) if isinstance(scope, str) else scope
    assert status(None) == status("tsk_00000000_wrong") == 401
    is_of_the_key = "<" not in path  # the list of projects
    assert status(_key(other.project, everything)) == (200 if is_of_the_key else 404)
    if needed:
        assert status(_key(desk.project, [each for each in everything if each not in needed])) == 403
    foreign = filled(path, other.names, "desk")
    # A model is deployed on an endpoint of this project, whatever others call theirs.
    if "<int:pk>" in path or ("/endpoints/<name>" in path and not path.endswith("/deploy")):
        assert status(_key(desk.project, everything), foreign) in (404, 409, 422)
    for each in needed or everything:
        assert status(_key(desk.project, [each])) not in (401, 403, 404, 405, 500)
