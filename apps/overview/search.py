"""Search over everything of a project that its member may open: pages, actions, and objects by name."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import urlencode

from django.apps import apps
from django.db.models import Q, QuerySet
from django.urls import reverse

from apps.accounts.models import Membership, Project, Role, User
from apps.accounts.new_projects import may_create_projects
from apps.accounts.selectors import memberships_of
from apps.accounts.templatetags.navigation import visible_groups
from apps.annotation.own_progress import my_campaigns
from apps.annotation.services import annotator_for
from apps.trajectories.filter_queries import filter_trajectories
from apps.trajectories.filters import TrajectoryFilter
from apps.trajectories.models import Trajectory

LONGEST_TEXT = 200
LEAST_TEXT = 2  # characters from which objects are looked for
_NUMBER_DIGITS = 18


class SearchHit(NamedTuple):
    """note: what tells it from others of the same name."""

    label: str
    note: str
    url: str


class SearchGroup(NamedTuple):
    """more_url: a page with all of them, where there are more."""

    label: str
    hits: list[SearchHit]
    more_url: str = ""


class SearchAction(NamedTuple):
    label: str
    url_name: str
    least_role: Role = Role.RESEARCHER


ACTIONS = (
    SearchAction("Import trajectories", "trajectories:trajectory-upload"),
    SearchAction("Create campaign", "annotation:campaign-create"),
    SearchAction("Create rubric", "rubrics:rubric-create"),
    SearchAction("Freeze feedback into a dataset version", "datasets:dataset-version-create"),
    SearchAction("Train a model", "training:run-create"),
    SearchAction("Import a model", "training:model-import-create"),
    SearchAction("Deploy a model", "rewards:endpoint-deploy"),
    SearchAction("Compose a reward", "rewards:endpoint-compose"),
    SearchAction("Create bulk job", "bulk:bulk-job-create"),
    SearchAction("Create connector", "connectors:connector-kinds", Role.OWNER),
    SearchAction("Invite people", "accounts:member-list", Role.OWNER),
    SearchAction("Create API key", "accounts:key-list", Role.OWNER),
)


@dataclass(frozen=True, slots=True)
class ObjectKind:
    """Rows found by a part of their name. names: the fields that are searched. hit: label, note, and the page's key."""

    label: str
    model: str
    project_path: str
    names: tuple[str, ...]
    label_of: Callable[[Any], str]
    note_of: Callable[[Any], str]
    url_name: str
    key: str = "pk"
    least_role: Role = Role.RESEARCHER
    where: Q = Q()  # noqa: RUF009 - never changed

    def find(self, project: Project, text: str, most: int) -> list[SearchHit]:
        named = Q()
        for name in self.names:
            named |= Q(**{f"{name}__icontains": text})
        rows: QuerySet[Any] = apps.get_model(self.model)._default_manager.filter(
            named, self.where, **{self.project_path: project}
        )
        return [
            SearchHit(
                self.label_of(row),
                self.note_of(row),
                reverse(self.url_name, args=[project.slug, getattr(row, self.key)]),
            )
            for row in rows.order_by("-pk")[:most]
        ]


def _versioned(row: Any) -> str:
    return f"{row.name}@{row.version}"


OBJECT_KINDS = (
    ObjectKind(
        "Campaigns",
        "annotation.Campaign",
        "project",
        ("name",),
        str,
        lambda row: row.get_state_display().lower(),
        "annotation:campaign-detail",
    ),
    ObjectKind(
        "Rubrics",
        "rubrics.Rubric",
        "project",
        ("name",),
        lambda row: row.name,
        lambda row: f"version {row.version}",
        "rubrics:rubric-detail",
    ),
    ObjectKind("Judges", "judges.Judge", "project", ("name",), str, lambda row: "", "judges:judge-detail"),
    ObjectKind(
        "Metrics",
        "metrics.Metric",
        "induction__project",
        ("name", "definition"),
        lambda row: row.name,
        lambda row: row.get_state_display().lower(),
        "metrics:metric-detail",
    ),
    ObjectKind(
        "Dataset versions",
        "datasets.DatasetVersion",
        "project",
        ("name",),
        _versioned,
        lambda row: row.get_state_display().lower(),
        "datasets:dataset-version-detail",
    ),
    ObjectKind(
        "Training runs",
        "training.TrainingRun",
        "project",
        ("model_name", "recipe_name"),
        lambda row: f"{row.model_name}, {row.recipe_title}",
        lambda row: row.get_state_display().lower(),
        "training:run-detail",
    ),
    ObjectKind(
        "Models",
        "training.RewardModel",
        "project",
        ("name",),
        _versioned,
        lambda row: ", ".join(row.tags),
        "training:model-detail",
        where=Q(deleted_at=None),
    ),
    ObjectKind(
        "Endpoints",
        "rewards.Endpoint",
        "project",
        ("name",),
        str,
        lambda row: "switched off" if row.switched_off else "",
        "rewards:endpoint-detail",
        key="name",
    ),
    ObjectKind(
        "Connectors",
        "connectors.Connector",
        "project",
        ("name",),
        str,
        lambda row: row.kind,
        "connectors:connector-detail",
    ),
)


def search_project(membership: Membership, user: User, text: str, *, most: int = 5) -> list[SearchGroup]:
    """Groups that have hits. Without text: pages and actions."""
    text = " ".join(text.split())[:LONGEST_TEXT]
    role = Role(membership.role)
    groups = [*_page_groups(membership.project, role, text)]
    if len(text) >= LEAST_TEXT or text.isdecimal():
        groups += _object_groups(membership.project, role, user, text, most)
    groups.append(
        SearchGroup("Projects", _projects(user, text, most, besides=membership.project) if text else [])
    )
    return [group for group in groups if group.hits]


def search_account(user: User, text: str, *, most: int = 10) -> list[SearchGroup]:
    """Outside of a project: projects, and the pages of the account."""
    text = " ".join(text.split())[:LONGEST_TEXT]
    pages = [
        ("All projects", f"{reverse('accounts:home')}?all"),
        ("Two-factor authentication", reverse("mfa_index")),
        ("Sessions", reverse("accounts:session-list")),
    ]
    if may_create_projects(user):
        pages.insert(1, ("Create project", reverse("accounts:project-create")))
    hits = [SearchHit(label, "", url) for label, url in pages if _matches(text, label)]
    groups = [SearchGroup("Projects", _projects(user, text, most)), SearchGroup("Account", hits)]
    return [group for group in groups if group.hits]


def _page_groups(project: Project, role: Role, text: str) -> Iterator[SearchGroup]:
    pages = [SearchHit("Home", "", reverse("accounts:project-home", args=[project.slug]))]
    for group, visible in visible_groups(role):
        pages += [
            SearchHit(page.label, group.label, reverse(page.url_name, args=[project.slug]))
            for page in visible
        ]
    if role.includes(Role.RESEARCHER):
        pages.append(SearchHit("Activity", "Home", reverse("overview:activity", args=[project.slug])))
    actions = [
        SearchHit(action.label, "", reverse(action.url_name, args=[project.slug]))
        for action in ACTIONS
        if role.includes(action.least_role)
    ]
    yield SearchGroup("Pages", [hit for hit in pages if _matches(text, hit.label, hit.note)])
    yield SearchGroup("Actions", [hit for hit in actions if _matches(text, hit.label)])


def _matches(text: str, *names: str) -> bool:
    """Whether each word begins a word of the names."""
    words = " ".join(names).lower().split()
    return all(any(word.startswith(part) for word in words) for part in text.lower().split())


def _object_groups(project: Project, role: Role, user: User, text: str, most: int) -> Iterator[SearchGroup]:
    if not role.includes(Role.RESEARCHER):
        yield SearchGroup("Campaigns", _own_campaigns(project, user, text, most))
        return
    yield from _trajectories(project, text, most)
    yield SearchGroup("Views", _views(project, text, most))
    for kind in OBJECT_KINDS:
        if role.includes(kind.least_role):
            yield SearchGroup(kind.label, kind.find(project, text, most))
    if role.includes(Role.OWNER):
        yield SearchGroup("People", _people(project, text, most))


def _own_campaigns(project: Project, user: User, text: str, most: int) -> list[SearchHit]:
    """What annotators see is read through their own row."""
    mine = my_campaigns(project, annotator_for(project=project, user=user))
    return [
        SearchHit(
            work.campaign.name,
            "",
            reverse(
                f"annotation:campaign-{'work' if work.is_workable else 'history'}",
                args=[project.slug, work.campaign.pk],
            ),
        )
        for work in mine
        if text.lower() in work.campaign.name.lower()
    ][:most]


def _trajectories(project: Project, text: str, most: int) -> Iterator[SearchGroup]:
    """By number, by the id of the source or of the task, then by words in any step."""
    rows = Trajectory.objects.filter(project=project).select_related("task").defer("metadata")
    exact = Q(external_id=text) | Q(task__external_id=text)
    if text.isdecimal() and len(text) <= _NUMBER_DIGITS:
        exact |= Q(pk=int(text))
    found = list(rows.filter(exact).order_by("-created_at")[:most])
    seen = {row.pk for row in found}
    matches = (
        filter_trajectories(project, TrajectoryFilter(text=text)).select_related("task").defer("metadata")
    )
    newest = list(matches.order_by("-created_at", "-pk")[: most + 1])
    found += [row for row in newest if row.pk not in seen]
    list_url = reverse("trajectories:trajectory-list", args=[project.slug])
    more_url = f"{list_url}?{urlencode({'text': text})}" if len(newest) > most else ""
    yield SearchGroup("Trajectories", [_trajectory_hit(project, row) for row in found[:most]], more_url)


def _trajectory_hit(project: Project, row: Trajectory) -> SearchHit:
    instruction = " ".join(row.task.instruction.split())
    label = instruction[:80] + ("…" if len(instruction) > 80 else "") or row.task.external_id
    note = " · ".join(part for part in (row.task.external_id[:40], row.agent_name) if part)
    return SearchHit(label, note, reverse("trajectories:trajectory-detail", args=[project.slug, row.pk]))


def _people(project: Project, text: str, most: int) -> list[SearchHit]:
    named = Q(user__name__icontains=text) | Q(user__email__icontains=text)
    rows = Membership.objects.filter(named, project=project).select_related("user").order_by("user__email")
    url = reverse("accounts:member-list", args=[project.slug])
    return [
        SearchHit(str(row.user), f"{row.user.email}, {row.get_role_display().lower()}", url)
        for row in rows[:most]
    ]


def _views(project: Project, text: str, most: int) -> list[SearchHit]:
    """Filters of trajectories that were saved under a name."""
    url = reverse("trajectories:trajectory-list", args=[project.slug])
    rows = project.saved_views.filter(name__icontains=text)[:most]
    return [SearchHit(view.name, "", f"{url}?{view.query}") for view in rows]


def _projects(user: User, text: str, most: int, besides: Project | None = None) -> list[SearchHit]:
    found = []
    for membership in memberships_of(user):
        project = membership.project
        if project != besides and text.lower() in f"{project.name} {project.slug}".lower():
            url = reverse("accounts:project-home", args=[project.slug])
            found.append(SearchHit(project.name, project.slug, url))
    return found[:most]
