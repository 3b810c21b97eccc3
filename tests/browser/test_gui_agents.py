"""What an agent saw and where it clicked; a robot's clip with its rewards; and what people said, where it is."""

import base64
import io
import json
from typing import Any

import pytest
from PIL import Image, ImageDraw
from playwright.sync_api import Page, expect

from apps.accounts.models import Project
from apps.annotation.feedback.services import import_feedback
from apps.trajectories.models import Trajectory
from apps.trajectories.services import import_trajectories
from tests.browser.test_trajectories import rose_at

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def url(picture: Image.Image, format: str = "PNG", **options: Any) -> str:
    out = io.BytesIO()
    picture.save(out, format, **options)
    return f"data:image/{format.lower()};base64,{base64.b64encode(out.getvalue()).decode()}"


def screen(title: str, *buttons: tuple[int, int, str]) -> str:
    """A window with buttons, (x, y, text) each."""
    picture = Image.new("RGB", (1280, 800), "#f4f5f7")
    draw = ImageDraw.Draw(picture)
    draw.rectangle((0, 0, 1280, 60), fill="#27496d")
    draw.text((24, 16), title, fill="white", font_size=26)
    for row in range(6):
        draw.rectangle((40, 110 + row * 70, 760, 160 + row * 70), fill="white", outline="#d0d4da")
        draw.text((60, 122 + row * 70), f"Order {1041 + row}   two pairs of shoes", fill="#333", font_size=22)
    for x, y, text in buttons:
        draw.rounded_rectangle((x - 80, y - 24, x + 80, y + 24), 8, fill="#2d7d46")
        draw.text((x - 56, y - 14), text, fill="white", font_size=22)
    return url(picture)


def tape() -> dict[str, Any]:
    def step(kind: str, **fields: Any) -> dict[str, Any]:
        return {"kind": kind, "metadata": {"agent": "clerk" if "action" in kind else ""}, **fields}

    first = screen("Orders", (920, 205, "Refund"), (920, 345, "Details"))
    return {
        "metadata": {"author": "clerk", "reward": 1.0, "task": {"task_name": "refund-1042"}},
        "steps": [
            step("task", task="Refund order 1042."),
            step("image_observation", image_path=first),
            {
                "kind": "reasoning_thought",
                "metadata": {"agent": "clerk"},
                "reasoning": "The second row is it.",
            },
            step("mouse_click_action", x=920, y=205),
            step("image_observation", image_path=screen("Refund order 1042?", (600, 400, "Refund"))),
            step("mouse_click_action", coordinate=[600, 400]),
            step("image_observation", image_path=screen("Refunded")),
            step("final_step", reason="Order 1042 is refunded."),
        ],
    }


def episode() -> dict[str, Any]:
    frames = []
    for place in range(20):
        picture = Image.new("RGB", (320, 200), "white")
        draw = ImageDraw.Draw(picture)
        draw.line((160, 180, 160 + 8 * (place - 10), 60), fill="#27496d", width=10)
        draw.rectangle((130, 176, 190, 196), fill="#444")
        frames.append(picture)
    clip = url(frames[0], "WEBP", save_all=True, append_images=frames[1:], duration=80, loop=0)
    rewards = [1.0 - abs(place - 10) * 0.2 for place in range(60)]
    return {
        "env_id": "Pole-v0",
        "observations": [[place / 10, 0.1] for place in range(61)],
        "actions": [[0.5] for _ in range(60)],
        "rewards": rewards,
        "clip": clip,
    }


def bring(project: Project, document: dict[str, Any]) -> Trajectory:
    import_trajectories(project=project, stream=io.BytesIO(json.dumps(document).encode()), by=None)
    return Trajectory.objects.latest("pk")


def test_clicks_are_drawn_on_screenshots(page: Page, live_server: Any, tools: Any, project: Project) -> None:
    row = bring(project, tape())
    rose_at(page, live_server, tools, project, f"{row.pk}/")
    drawn = page.locator(".step-picture svg")
    expect(drawn).to_have_count(2)
    expect(page.locator(".step-picture img")).to_have_count(1)  # after the last of which nothing was clicked
    # The mark lies where the button is, however wide the picture is shown.
    for width in (1440, 480):
        page.set_viewport_size({"width": width, "height": 900})
        whole, mark = drawn.first.bounding_box(), page.locator(".picture-mark").first.bounding_box()
        assert whole is not None and mark is not None
        assert (mark["x"] + mark["width"] / 2 - whole["x"]) / whole["width"] == pytest.approx(
            920 / 1280, abs=0.01
        )
        assert (mark["y"] + mark["height"] / 2 - whole["y"]) / whole["height"] == pytest.approx(
            205 / 800, abs=0.01
        )
    page.set_viewport_size({"width": 1440, "height": 900})
    loaded = "[...document.querySelectorAll('.step-picture img')].every((one) => one.complete && one.naturalWidth > 0)"
    page.locator(".step-picture img").scroll_into_view_if_needed()
    page.wait_for_function(loaded)
    page.evaluate("scrollTo(0, 0)")
    tools.shoot(page, "gui-agent")


def test_rewards_and_notes_stand_along_the_trajectory(
    page: Page, live_server: Any, tools: Any, project: Project
) -> None:
    row = bring(project, episode())
    said = {"task": {"id": row.task.external_id}, "trajectory": {"trajectory_id": "here"}, "annotator": "ann"}
    Trajectory.objects.filter(pk=row.pk).update(external_id="here")
    lines = [
        said | {"text": "It falls from here on.", "anchor": {"steps": [30, 34]}, "sign": -1},
        said | {"text": "A steady beginning.", "anchor": None, "sign": 1},
    ]
    stream = io.BytesIO("\n".join(map(json.dumps, lines)).encode())
    assert import_feedback(project=project, stream=stream, format="comments", by=None).created == 2
    labels = said | {"labels": {"10": "good", "40": "bad"}, "annotator": "ben"}
    assert (
        import_feedback(
            project=project, stream=io.BytesIO(json.dumps(labels).encode()), format="steps", by=None
        ).created
        == 1
    )
    base = rose_at(page, live_server, tools, project, f"{row.pk}/?show_outcome=0")
    # What is known of the outcome is hidden when that is asked for.
    expect(page.locator(".reward-line")).to_have_count(0)
    expect(page.locator(".mark-noted")).to_have_count(7)
    page.goto(f"{base}{row.pk}/")
    expect(page.locator(".reward-line a rect.is-up")).to_have_count(11)  # with two of 0
    expect(page.locator(".reward-line a rect.is-down")).to_have_count(49)
    page.locator(".viewer-notes summary").click()
    expect(page.locator(".viewer-notes li")).to_have_text(
        [
            "ann · good A steady beginning.",
            "11 ben good",
            "30–34 ann · bad It falls from here on.",
            "41 ben bad",
        ]
    )
    tools.shoot(page, "episode")
    page.locator(".reward-line svg a").nth(44).click()
    expect(page.locator(".step.is-current")).to_have_attribute("data-step", "45")
    page.locator(".viewer-notes a").last.click()
    expect(page.locator(".step.is-current")).to_have_attribute("data-step", "41")
