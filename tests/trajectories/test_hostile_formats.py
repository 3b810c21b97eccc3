"""Hostile text in every field of every format: stored as text, shown as text."""

import copy
import io
import json
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from typing import Any

import pytest
from django.test import Client

from apps.accounts.models import Project, User
from apps.core.errors import DomainError
from apps.trajectories.models import Trajectory
from apps.trajectories.services import import_trajectories
from tests.trajectories.hostile import HOSTILE
from tests.trajectories.mutations import DOCUMENTS

EVIL = " ".join(text for text in HOSTILE if "hit(" in text)[:1500]
NAME = "<img src=x onerror=hit('name')>"


class Page(HTMLParser):
    """Fails for anything that could run, load or send from elsewhere."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        of = dict(attrs)
        assert tag not in ("iframe", "object", "embed", "base", "svg:script", "style"), tag
        assert not any(name.startswith("on") or name == "style" or name == "srcdoc" for name in of), of
        if tag == "script":
            assert (of.get("src") or "").startswith("/static/") or of.get("type") == "application/json", of
        for name in ("src", "action", "hx-get", "hx-post", "formaction"):
            assert not of.get(name) or str(of[name]).startswith(("/", "?")), of
        assert (of.get("href") or "/").startswith(("/", "#", "?", "http://", "https://", "mailto:")), of


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where strings stand."""
    if isinstance(value, str):
        yield path
    for key, inner in (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    ):
        yield from places(inner, (*path, key))


def at(document: Any, path: tuple[Any, ...]) -> Any:
    return at(document[path[0]], path[1:]) if path else document


# NAME is for what is too short for EVIL, the last for a text that is a whole dialogue.
TEXTS: tuple[Callable[[str], str], ...] = (lambda _: EVIL, lambda _: NAME, lambda before: f"{before} {EVIL}")


def put(name: str, paths: list[tuple[Any, ...]], text: Callable[[str], str]) -> Any:
    """The document of a format with hostile text in these places."""
    document = copy.deepcopy(DOCUMENTS[name])
    for path in paths:
        inner = at(document, path[:-1])
        inner[path[-1]] = text(inner[path[-1]])
    return document


def import_with(project: Project, name: str, paths: list[tuple[Any, ...]]) -> int:
    """Trajectories made of documents with the text in these places: in all at once where the format takes that, else in
    half of them, down to one. Places that tell the format what is what refuse the text."""
    for text in TEXTS if len(paths) == 1 else TEXTS[:2]:
        stream = io.BytesIO(json.dumps(put(name, paths, text)).encode())
        try:
            created = import_trajectories(project=project, stream=stream, format=name, by=None).created
        except DomainError as error:
            assert str(error)
            continue
        if created:
            return created
    if len(paths) < 2:
        return 0
    half = len(paths) // 2
    return import_with(project, name, paths[:half]) + import_with(project, name, paths[half:])


@pytest.mark.parametrize(
    "at_once", [pytest.param(False, id="each", marks=pytest.mark.long), pytest.param(True, id="all")]
)
@pytest.mark.parametrize("name", DOCUMENTS)
def test_no_field_of_a_format_runs(
    name: str, at_once: bool, project: Project, researcher: User, client: Client
) -> None:
    """What takes the text shows it; the text is in one place of a document only in the long test."""
    paths = list(places(DOCUMENTS[name]))
    taken = sum(
        import_with(project, name, some) for some in ([paths] if at_once else [[path] for path in paths])
    )
    rows = list(Trajectory.objects.all())
    assert taken == len(rows) > 0
    for row in rows:
        Page(client.get(f"/p/desk/trajectories/{row.pk}/?show_outcome=1").content.decode())
    for other in ("", f"{rows[0].pk}/compare/{rows[-1].pk}/", f"tasks/{rows[-1].task_id}/", "agents/"):
        Page(client.get(f"/p/desk/trajectories/{other}").content.decode())
