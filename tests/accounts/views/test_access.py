"""Every page of accounts, by everyone: who may, who may not, and how they are told."""

from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse

from apps.accounts import services
from apps.accounts.models import Project

OWNERS_ONLY = {"owner": True, "researcher": False, "reviewer": False, "annotator": False}
EVERY_MEMBER = dict.fromkeys(OWNERS_ONLY, True)
PAGES = [
    ("project-home", "get", EVERY_MEMBER),
    ("member-list", "get", OWNERS_ONLY),
    ("member-add", "post", OWNERS_ONLY),
    ("member-change", "post", OWNERS_ONLY),
    ("member-remove", "post", OWNERS_ONLY),
    ("key-list", "get", OWNERS_ONLY),
    ("key-create", "post", OWNERS_ONLY),
    ("key-revoke", "post", OWNERS_ONLY),
    ("audit-list", "get", OWNERS_ONLY),
]


@pytest.fixture
def url(project: Project, people: dict[str, object]) -> Callable[[str], str]:
    key, _ = services.create_api_key(project=project, scopes=["reward"])
    last = project.memberships.get(user__email="annotator@example.org")
    ids = {"member-change": [last.pk], "member-remove": [last.pk], "key-revoke": [key.pk]}
    return lambda name: reverse(f"accounts:{name}", args=[project.slug, *ids.get(name, [])])


@pytest.mark.parametrize("who", [*OWNERS_ONLY, "stranger", "anonymous"])
@pytest.mark.parametrize(("name", "method", "allowed"), PAGES)
def test_who_may_open(
    as_: Callable[[str], Client],
    url: Callable[[str], str],
    name: str,
    method: str,
    allowed: dict[str, bool],
    who: str,
) -> None:
    answer = getattr(as_(who), method)(url(name))
    if who == "anonymous":
        assert answer.status_code == 302
        assert answer["Location"].startswith(reverse("accounts:login"))
    elif who == "stranger":
        assert answer.status_code == 404
    elif allowed[who]:
        assert answer.status_code in (200, 302, 400, 422)
    else:
        assert answer.status_code == 403
        assert "needs the role owner" in answer.content.decode()


@pytest.mark.parametrize(("name", "method", "allowed"), PAGES)
def test_the_wrong_method_is_refused(
    as_: Callable[[str], Client], url: Callable[[str], str], name: str, method: str, allowed: dict[str, bool]
) -> None:
    wrong = "post" if method == "get" else "get"
    assert getattr(as_("owner"), wrong)(url(name)).status_code == 405


@pytest.mark.parametrize("name", ["member-change", "member-remove", "key-revoke"])
def test_things_of_another_project_are_not_found(
    as_: Callable[[str], Client], project: Project, people: dict[str, object], name: str
) -> None:
    other = services.create_project(slug="other", owner=people["stranger"])  # type: ignore[arg-type]
    key, _ = services.create_api_key(project=other, scopes=["reward"])
    pk = key.pk if name == "key-revoke" else other.memberships.get().pk
    answer = as_("owner").post(reverse(f"accounts:{name}", args=[project.slug, pk]), {"role": "annotator"})
    assert answer.status_code == 404
    key.refresh_from_db()
    assert key.is_live
    assert other.memberships.count() == 1
