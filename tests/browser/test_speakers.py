"""A log of several agents: its page names them, a list leads to their steps, sub-agents and parents link."""

import io
import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from apps.accounts.models import Project
from apps.trajectories.models import Trajectory
from apps.trajectories.services import import_trajectories
from tests.browser.test_trajectories import rose_at
from tests.trajectories.conftest import lines

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def step(number: int, source: str, text: str, speaker: str | None) -> dict[str, Any]:
    named = {} if speaker is None else {"extra": {"speaker": speaker}}
    return {"step_id": number, "source": source, "message": text} | named


def log() -> dict[str, Any]:
    said = [
        ("user", "Find out why the parcel is late.", "Ann"),
        ("agent", "Carrier desk, please look up the parcel.", "Planner"),
        ("agent", "It waits in Ulm for a customs form.", "Carrier desk with a name that is rather long"),
        ("agent", "I will ask for the form.", "Planner"),
        ("agent", "Done.", None),
    ]
    steps = [step(number, *fields) for number, fields in enumerate(said, start=1)]
    agent = {"name": "team", "version": "1"}
    head = {"schema_version": "ATIF-v1.7", "agent": agent}
    inner = head | {"session_id": "inner", "trajectory_id": "inner", "steps": steps[1:3]}
    inner["steps"] = [each | {"step_id": number} for number, each in enumerate(inner["steps"], start=1)]
    return head | {"session_id": "outer", "steps": steps, "subagent_trajectories": [inner]}


def test_speakers_and_sub_agents(page: Page, live_server: Any, tools: Any, project: Project) -> None:
    result = import_trajectories(project=project, stream=io.BytesIO(lines(log())), by=None)
    assert result.created == 2, result.rejected
    outer = Trajectory.objects.get(external_id="outer")
    rose_at(page, live_server, tools, project, f"{outer.pk}/")
    expect(page.locator(".step-who").nth(1)).to_have_text("Planner")
    speakers = page.locator(".viewer-speakers")
    speakers.locator("summary").click()
    expect(speakers).to_contain_text("Planner 2 steps")
    tools.shoot(page, "speakers")
    speakers.get_by_role("link", name="3", exact=True).click()
    expect(page).to_have_url(re.compile(rf"#t{outer.pk}-s3$"))
    details = page.locator("#rail-details")
    details.locator("dt:has-text('Sub-agents') + dd a").click()
    details.locator("dt:has-text('Sub-agent of') + dd a").click()
    expect(page).to_have_url(re.compile(rf"/trajectories/{outer.pk}/$"))
