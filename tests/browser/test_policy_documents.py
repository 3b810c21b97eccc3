"""A policy document: typed, reviewed, and its next version."""

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from apps.accounts.models import Project, User
from apps.policy_documents.models import PolicyRule

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
TEXT = "# Refunds\n\n- You must ask before a refund.\n- A refund can be at most 50 dollars.\n"


def test_a_document_is_typed_and_its_rules_are_decided(
    page: Page, live_server: Any, tools: Any, project: Project
) -> None:
    tools.login(page, live_server, User.objects.get(email="rose@example.org"))
    page.goto(f"{live_server.url}/p/desk/policy-documents/")
    expect(page.get_by_text("No policy documents yet")).to_be_visible()
    page.get_by_role("link", name="Add document").first.click()
    page.get_by_label("Name").fill("Refunds")
    page.get_by_label("Or its text").fill(TEXT)
    tools.shoot(page, "policy-document-create")
    page.get_by_role("button", name="Find rules").click()
    page.get_by_label("Select rule 1").check()
    page.get_by_label("Select rule 2").check()
    page.get_by_role("button", name="Accept selected").click()
    expect(page.get_by_text("2 rules accepted.")).to_be_visible()
    page.get_by_role("link", name="Add version").click()
    page.get_by_label("Or its text").fill(TEXT.replace("50", "80"))
    page.get_by_role("button", name="Find rules").click()
    expect(page.get_by_role("heading", name="To judge again")).to_be_visible()
    tools.shoot(page, "policy-document-detail")
    page.get_by_role("link", name="A refund can be at most 80 dollars.").first.click()
    expect(page.locator("mark")).to_have_text("A refund can be at most 80 dollars.")
    tools.shoot(page, "policy-rule")
    page.get_by_role("button", name="Accept", exact=True).click()
    rule = PolicyRule.objects.get(version__number=2, statement__contains="80")
    assert rule.state == "accepted" and rule.criterion is not None and rule.criterion.version == 2
