"""When each page is first painted, how much of it is sent, and what charts add: Chromium's own paint timing.

`python -m benchmarks.first_paint [--json] [--quick]` opens the pages of the sample project: a whole installation on
localhost, headless Chromium at 1440 pixels; each page with nothing cached, and then with static files cached. Prints
{page: {cold_ms, warm_ms, page_kb, chart_kb, chart_after_ms}}: kB as sent, so compressed; the chart library apart, and
how long after the first paint its request began. Ends with 1 where a page is over the budget.
"""

import argparse
import json
import os
import sys
from statistics import median
from typing import Any

from playwright.sync_api import BrowserContext, Page

from benchmarks.browsing import PASSWORD, signed_in

EMAIL = "rose@example.org"
BUDGET = {"cold_ms": 300.0, "warm_ms": 300.0, "page_kb": 110.0, "chart_kb": 200.0}
CHARTS = "/vendor/echarts/"
SLUG = "desk"
PAGES = (
    *("", "search/?q=refund", "people", "keys", "audit", "health", "data/", "webhooks/", "llm-connections/"),
    *("trajectories/", "trajectories/by-task/", "trajectories/agents/", "trajectories/upload/"),
    *("trajectories/masking/", "semantic-search/", "clusters/", "questions/", "lineage/"),
    *("bulk/", "bulk/new/", "connectors/", "connectors/new/", "judges/", "rubrics/", "rubrics/new/"),
    *("campaigns/", "campaigns/my-work/", "campaigns/new/", "metrics/", "metrics/scoreboard/"),
    *("datasets/", "datasets/new/", "datasets/exports/", "datasets/erase/"),
    *(
        "datasets/trajectories/export/",
        "datasets/trajectories/delete/",
        "training/runs/",
        "training/runs/new/",
    ),
    *("training/models/", "training/model-imports/new/", "endpoints/", "endpoints/compose/"),
    *("endpoints/deploy/", "endpoints/servers/", "alerts/", "reward-studies/", "reward-studies/create/"),
    *(
        "trajectories/{trajectory}/",
        "trajectories/{trajectory}/compare/{other}/",
        "trajectories/tasks/{task}/",
    ),
    *("campaigns/{campaign}/", "campaigns/{campaign}/work/", "campaigns/{annotated}/quality/"),
    "datasets/{version}/",
)
QUICK = ("", "trajectories/", "endpoints/compose/")
ROUNDS = 3  # of the warm page, of which the median counts
TIMES = """() => {
  const paint = performance.getEntriesByName("first-contentful-paint")[0];
  const page = performance.getEntriesByType("navigation")[0];
  const files = performance.getEntriesByType("resource");
  return { paint: paint ? paint.startTime : null, sent: page.transferSize,
    files: files.map((file) => [file.name, file.transferSize, file.startTime]) };
}"""


def prepare() -> dict[str, int]:
    """The sample project, and the numbers of its objects. In a process whose settings are those of the installation."""
    import django

    django.setup()
    from apps.accounts.services import create_project, create_user
    from apps.demo import loop

    user, _ = create_user(email=EMAIL, password=PASSWORD)
    project = create_project(slug=SLUG, name="Support desk", owner=user)
    loop.load_sample(project, user)
    campaign = loop.make_campaign(project, user)
    version = loop.freeze(project, user, again=False)
    first = project.trajectories.order_by("pk")[0]
    other = project.trajectories.filter(task=first.task).exclude(pk=first.pk).order_by("pk")[0]
    return {
        "trajectory": first.pk,
        "other": other.pk,
        "task": first.task_id,
        "campaign": campaign.pk,
        "annotated": project.campaigns.get(name="Sample comparisons").pk,
        "version": version.pk,
    }


def open_once(page: Page, url: str) -> dict[str, Any]:
    answer = page.goto(url, wait_until="networkidle")
    assert answer is not None and answer.status == 200, f"{url}: {answer and answer.status}"
    found: dict[str, Any] = page.evaluate(TIMES)
    assert found["paint"] is not None, f"{url} was not painted"
    return found


def measure_page(cold: BrowserContext, warm: Page, url: str) -> dict[str, float | None]:
    first = open_once(cold.new_page(), url)
    again = [open_once(warm, url)["paint"] for _ in range(ROUNDS)]
    charts = [(size, began) for name, size, began in first["files"] if CHARTS in name]
    # What a page asks for after it was painted fills it in place; it is part of the page's weight all the same.
    weight = first["sent"] + sum(size for name, size, _ in first["files"] if CHARTS not in name)
    return {
        "cold_ms": round(first["paint"], 1),
        "warm_ms": round(median(again), 1),
        "page_kb": round(weight / 1000, 1),
        "chart_kb": round(sum(size for size, _ in charts) / 1000, 1),
        "chart_after_ms": round(min(began for _, began in charts) - first["paint"], 1) if charts else None,
    }


def measure(paths: tuple[str, ...]) -> dict[str, Any]:
    with signed_in(EMAIL, "benchmarks.first_paint") as (page, url, numbers):
        browser = page.context.browser
        assert browser is not None
        state = page.context.storage_state()
        page.goto(f"{url}/p/{SLUG}/", wait_until="networkidle")  # the server's own first time
        found = {}
        for path in paths:
            cold = browser.new_context(viewport={"width": 1440, "height": 900}, storage_state=state)
            found[path] = measure_page(cold, page, f"{url}/p/{SLUG}/{path.format(**numbers)}")
            cold.close()
        return found


def over_budget(found: dict[str, Any]) -> list[str]:
    over = [
        f"/{path}: {name} is {one[name]:g}, the budget is {most:g}"
        for path, one in found.items()
        for name, most in BUDGET.items()
        if one[name] > most
    ]
    early = [
        path for path, one in found.items() if one["chart_after_ms"] is not None and one["chart_after_ms"] < 0
    ]
    return over + [f"/{path}: the chart library is asked for before the first paint" for path in early]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.first_paint", description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true", help="three pages, and no budget: does it run?")
    parser.add_argument("--prepare", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.prepare:
        print(json.dumps(prepare()))
        return 0
    found = measure(QUICK if asked.quick else PAGES)
    over = over_budget(found)
    if asked.json:
        print(json.dumps(found))
    else:
        print(f"{'':48}{'cold ms':>9}{'warm ms':>9}{'page kB':>9}{'charts kB':>11}{'after ms':>10}")
        for path, one in found.items():
            after = "" if one["chart_after_ms"] is None else one["chart_after_ms"]
            row = f"{one['cold_ms']:9}{one['warm_ms']:9}{one['page_kb']:9}{one['chart_kb']:11}{after:>10}"
            print(f"/{path:47}{row}")
        print("\n".join(over) or "Every page is within the budget.")
    return 1 if over and not asked.quick else 0


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "apps.config.settings")
    sys.exit(main())
