"""Charts in a browser: what they weigh, when they are loaded, and their controls."""

import csv
import gzip
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from apps.accounts.models import User
from apps.annotation.models import Campaign
from apps.training.models import TrainingRun, TrainingRunEvent
from tests.browser.test_quality import judged as judged
from tests.datasets.feedback import freeze, import_pairs, pair

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

PAGE_BYTES, CHART_BYTES = 110_000, 200_000  # compressed


def weigh(page: Page, url: str) -> dict[str, int]:
    """Compressed bytes of each file that the page loads, nothing of it from the cache."""
    found: list[Any] = []

    def note(response: Any) -> None:
        found.append(response)

    page.wait_for_load_state("networkidle")  # of the page before
    page.goto("about:blank")
    page.context.new_cdp_session(page).send("Network.setCacheDisabled", {"cacheDisabled": True})
    page.on("response", note)
    page.goto(url)
    page.wait_for_load_state("networkidle")
    page.remove_listener("response", note)
    return {
        re.sub(r".*?//[^/]+", "", response.url): len(gzip.compress(response.body(), 6))
        for response in found
        if response.ok
    }


def test_pages_are_light_and_charts_come_later(
    page: Page, live_server: Any, tools: Any, judged: Campaign
) -> None:
    tools.login(page, live_server, User.objects.get(email="rose@example.org"))
    home = weigh(page, f"{live_server.url}/p/desk/campaigns/{judged.pk}/")
    assert sum(home.values()) <= PAGE_BYTES, home
    assert not [name for name in home if "chart" in name]
    quality = weigh(page, f"{live_server.url}/p/desk/campaigns/{judged.pk}/quality/")
    expect(page.locator("#alpha svg")).to_be_visible()
    charts = {name: size for name, size in quality.items() if "chart" in name}
    assert sum(charts.values()) <= CHART_BYTES and len(charts) == 3, charts
    assert sum(quality.values()) - sum(charts.values()) <= PAGE_BYTES, quality
    painted, wanted = page.evaluate(
        "[performance.getEntriesByName('first-contentful-paint')[0].startTime,"
        " performance.getEntriesByType('resource').find((each) => each.name.includes('/js/charts.')).startTime]"
    )
    assert painted <= wanted, "chart code waits for the first paint"


def test_a_page_whose_files_are_known_is_one_request(
    page: Page, live_server: Any, tools: Any, judged: Campaign
) -> None:
    tools.login(page, live_server, User.objects.get(email="rose@example.org"))
    address = f"{live_server.url}/p/desk/campaigns/"
    page.goto(address, wait_until="networkidle")
    sent = "performance.getEntriesByType('resource').map((each) => [each.name, each.transferSize])"
    page.goto(address, wait_until="networkidle")
    again = page.evaluate(sent)
    assert len(again) >= 10 and not [each for each in again if each[1]], again


def test_curves_are_zoomed_smoothed_and_saved(
    page: Page, live_server: Any, tools: Any, campaign: Campaign, tmp_path: Path
) -> None:
    import_pairs(campaign.project, [pair(f"order {number}") for number in range(10)])
    run = TrainingRun.objects.create(
        project=campaign.project,
        dataset_version=freeze(campaign.project),
        recipe_name="linear",
        recipe={},
        seed=0,
        state="succeeded",
    )
    TrainingRunEvent.objects.bulk_create(
        TrainingRunEvent(training_run=run, attempt=1, seq=step, data={"step": step, "loss": loss})
        for step in range(1, 41)
        for loss in [round(0.7 - step / 100 + step % 2 / 10, 3)]
    )
    tools.login(page, live_server, User.objects.get(email="rose@example.org"))
    page.goto(f"{live_server.url}/p/desk/training/runs/{run.pk}/")
    figure = page.locator("figure:has(#loss)")
    expect(figure.locator("svg")).to_be_visible()
    before = figure.locator("svg").inner_html()
    figure.get_by_label("Smoothing").fill("0.9")
    expect(figure.locator("svg path[stroke-opacity='0.3']")).to_have_count(1)
    smooth = figure.locator("svg").inner_html()
    figure.get_by_role("button", name="Zoom in").click()
    assert before != smooth
    # ECharts draws what was clicked in the next frame.
    page.wait_for_function(
        "(earlier) => !earlier.includes(document.querySelector('figure:has(#loss) svg').innerHTML)",
        arg=[before, smooth],
    )
    with page.expect_download() as saved:
        figure.get_by_role("button", name="CSV").click()
    path = tmp_path / "loss.csv"
    saved.value.save_as(path)
    rows = list(csv.DictReader(path.read_text().splitlines()))
    assert len(rows) == 40
    assert (rows[0]["series"], rows[0]["training step"], rows[0]["loss"]) == ("training loss", "1", "0.79")
    with page.expect_download() as saved:
        figure.get_by_role("button", name="PNG").click()
    saved.value.save_as(tmp_path / "loss.png")
    assert (tmp_path / "loss.png").read_bytes().startswith(b"\x89PNG")
    figure.get_by_text("Numbers").click()
    expect(figure.get_by_role("row", name="40 0.300")).to_be_visible()
    tools.shoot(page, "training-run-charts")
