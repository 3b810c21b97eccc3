"""The builder has a card for every component and transform, and what a card shows and writes is the spec."""

import json
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from apps.accounts.models import User
from apps.annotation.models import Campaign
from apps.rewards.part_schemas import part_schemas

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
LABELS = {"components": "Add component", "transforms": "Add transform"}


def spec_of(page: Page) -> dict[str, Any]:
    spec: dict[str, Any] = json.loads(page.locator("#id_spec").input_value())
    return spec


def test_every_part_has_a_card(page: Page, live_server: Any, tools: Any, campaign: Campaign) -> None:
    tools.login(page, live_server, User.objects.get(email="rose@example.org"))
    page.goto(f"{live_server.url}/p/desk/endpoints/compose/")
    schemas = part_schemas()
    for parts, label in LABELS.items():
        for schema in (schema for schema in schemas[parts] if not schema["fixed"]):
            page.locator(f"#add-{parts}").select_option(schema["type"])
            page.get_by_role("button", name=label).click()
            place = len(spec_of(page)[parts]) - 1
            assert spec_of(page)[parts][place]["type"] == schema["type"]
            card = page.locator(".part-card").filter(has=page.locator(f"[id^='part-{parts}-{place}-']"))
            if schema["fields"]:
                expect(card.locator("strong")).to_have_text(schema["title"])
                expect(card.locator("label")).to_have_count(len(schema["fields"]))
            for field in schema["fields"]:
                control = page.locator(f"#part-{parts}-{place}-{field['name']}")
                expect(control).to_be_visible()
                if field["kind"] in ("choice", "model", "judge", "component"):
                    assert control.evaluate("control => control.tagName") == "SELECT"
                if field["kind"] == "choice" and not field["required"]:
                    expect(control).to_have_value(
                        field["default"] or ""
                    )  # what applies where nothing is written
                if field["help"]:
                    expect(control).to_have_accessible_description(field["help"])
    spec = spec_of(page)
    assert {part["type"] for part in spec["components"]} == {
        schema["type"] for schema in schemas["components"]
    }
    assert {part["type"] for part in spec["transforms"]} == {
        schema["type"] for schema in schemas["transforms"]
    }
    for place in range(len(spec["components"])):
        page.locator(f"#part-components-{place}-weight").fill("0.5")
        page.locator(f"#part-components-{place}-weight").blur()
    halved = [part | {"weight": 0.5} for part in spec["components"]]
    assert spec_of(page) == spec | {"components": halved}  # and nothing else was written
    page.get_by_role("tab", name="JSON").click()
    page.get_by_role("tab", name="Builder").click()
    assert spec_of(page) == spec | {"components": halved}
    tools.shoot(page, "endpoint-compose-cards")
    page.get_by_role("button", name="Fit weights").click()
    expect(page.get_by_role("heading", name="Start a reward study")).to_be_visible()
    assert spec_of(page) == spec | {"components": halved}
    expect(page.get_by_label("Fit to")).to_be_visible()
    page.get_by_label("Study").select_option("analysis")
    expect(page.get_by_label("Hacking probes")).to_be_visible()
    expect(page.get_by_label("Fit to")).to_be_hidden()
    tools.shoot(page, "reward-study-create")
