"""Connections that read pictures: their settings, their test, and what a picture reserves of the budget."""

import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client

from apps.accounts.models import Project
from apps.core.errors import DomainError
from apps.llm import services
from apps.llm.calls import call
from apps.llm.checks import check_llm_connection
from apps.llm.models import LLMConnection, Spending
from apps.llm.services import LLMConnectionSpec
from tests.factories import make_member
from tests.workers.llm.scripted import Body, Reply, Script, completion, scripted
from tests.workers.llm.seeing import pictures_of

pytestmark = pytest.mark.django_db
COLOURS = {"red": (220, 20, 20), "green": (20, 160, 20), "blue": (20, 40, 220), "yellow": (240, 220, 20)}


def names_the_colour(body: Body, *, tokens: int = 765) -> Reply:
    """As a model that sees; a picture counts as so many tokens."""
    seen = pictures_of(body)
    said = "ready"
    for _, picture in seen:
        assert picture.size == (768, 768)
        pixel = picture.getpixel((9, 9))
        said = min(
            COLOURS, key=lambda name: sum(abs(a - b) for a, b in zip(COLOURS[name], pixel, strict=True))
        )
    usage = {"prompt_tokens": 20 + tokens * len(seen), "completion_tokens": 2, "total_tokens": 0}
    return 200, completion(f"It is {said}.") | {"usage": usage}


@pytest.fixture
def script(settings: Any) -> Script:
    settings.OUTGOING_ALLOW = ["127.0.0.0/8"]
    return Script(names_the_colour)


@pytest.fixture
def address(script: Script) -> Iterator[str]:
    with scripted(script) as url:
        yield url


def connection(project: Project, address: str, **given: Any) -> LLMConnection:
    spec = LLMConnectionSpec(
        name="eyes", base_url=address, model="seeing", **{"reads_pictures": True} | given
    )
    return services.create_llm_connection(project=project, spec=spec, key="", by=None)


def test_the_test_asks_for_a_colour_and_counts_the_tokens(project: Project, address: str) -> None:
    told = check_llm_connection(llm_connection=connection(project, address))
    assert "It reads pictures" in told and "768 × 768 pixels counted as 765 tokens." in told


def test_it_says_where_a_picture_counts_as_more_than_is_reserved(
    project: Project, address: str, script: Script
) -> None:
    script.answer = lambda body: names_the_colour(body, tokens=25_501)
    told = check_llm_connection(llm_connection=connection(project, address))
    assert "counted as 25,501 tokens, more than the 1,600" in told and "raise them to 25,501" in told


def test_a_model_that_guesses_is_found_out(project: Project, address: str, script: Script) -> None:
    script.answer = lambda body: "It looks nice."
    with pytest.raises(DomainError, match="does not seem to read pictures"):
        check_llm_connection(llm_connection=connection(project, address))


def test_a_server_that_refuses_pictures_says_so(project: Project, address: str, script: Script) -> None:
    refusal = (400, {"error": {"message": "image_url is not supported"}})
    script.answer = lambda body: refusal if pictures_of(body) else "ready"
    with pytest.raises(DomainError, match="image_url is not supported"):
        check_llm_connection(llm_connection=connection(project, address))


def test_the_settings_are_entered_on_the_page(project: Project, address: str, client: Client) -> None:
    client.force_login(make_member(project, "owner@example.org", "owner"))
    base = f"/p/{project.slug}/llm-connections/"
    given = {
        "name": "eyes",
        "base_url": address,
        "model": "seeing",
        "reads_pictures": "on",
        "max_pictures": 4,
    }
    assert client.post(base, given).status_code == 302
    row = LLMConnection.objects.get()
    assert (row.reads_pictures, row.max_pictures, row.picture_pixels, row.picture_tokens) == (
        True,
        4,
        768,
        1600,
    )
    assert "reads pictures, up to 4 per call" in client.get(base).content.decode()
    assert "It reads pictures" in client.post(f"{base}{row.pk}/test/", follow=True).content.decode()
    assert client.post(f"{base}{row.pk}/", given | {"max_pictures": 17}).status_code == 422
    assert client.post(f"{base}{row.pk}/", {**given, "reads_pictures": ""}).status_code == 302
    row.refresh_from_db()
    assert not row.reads_pictures and row.pictures_per_call == 0


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"max_pictures": 0}, "/max_pictures"),
        ({"max_pictures": 17}, "/max_pictures"),
        ({"picture_pixels": 63}, "/picture_pixels"),
        ({"picture_pixels": 769}, "/picture_pixels"),
        ({"picture_tokens": 0}, "/picture_tokens"),
        ({"base_url": "", "folder": "listed"}, "/reads_pictures"),
    ],
)
def test_what_cannot_be_is_refused(project: Project, settings: Any, fields: Any, pointer: str) -> None:
    settings.MODEL_DIRS = {"listed": "/models/listed"}
    settings.OUTGOING_ALLOW = ["127.0.0.0/8"]
    given = {"name": "a", "base_url": "http://127.0.0.1/v1", "model": "m", "reads_pictures": True} | fields
    with pytest.raises(DomainError) as error:
        services.create_llm_connection(project=project, spec=LLMConnectionSpec(**given), by=None)
    assert error.value.pointer == pointer


def test_a_picture_reserves_its_tokens_and_not_its_bytes(
    project: Project, address: str, script: Script
) -> None:
    """A reply without counts keeps what was reserved."""
    script.answer = lambda body: (200, completion("x") | {"usage": None})
    row = connection(
        project, address, prompt_price=Decimal(1000), completion_price=Decimal(0), picture_tokens=500
    )
    picture = {"type": "image_url", "image_url": {"url": "data:image/jpeg;base64," + "A" * 100_000}}
    text = {"type": "text", "text": "x" * 1000}
    for parts in ([text], [text, picture, picture]):
        body = json.dumps({"messages": [{"role": "user", "content": parts}]}).encode()
        call(row, body, purpose="trial")
    plain, seen = Decimal(1000 + 200) / 1000, Decimal(2 * 500) / 1000
    assert 2 * plain + seen <= Spending.objects.get().cost < 2 * plain + seen + 1
