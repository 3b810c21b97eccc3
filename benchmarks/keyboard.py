"""How many keys a judgement of each kind takes, and how long the annotator waits for the next item.

`python -m benchmarks.keyboard [--json] [--quick]` prints {kind: {keys, judgements, wait_median_ms, wait_p95_ms}}: a
whole installation on a home of its own, headless Chromium, and a script that only presses keys. A wait goes from Enter
to the second frame painted with the next item; loading, rendering and saving are in it, and no one else is at work.
"""

import argparse
import json
import os
import sys
from dataclasses import dataclass, field
from statistics import median, quantiles
from typing import Any

from playwright.sync_api import Page

from benchmarks.browsing import PASSWORD, signed_in

EMAIL = "ann@example.org"
FULL, QUICK = 30, 3
ON_ENTER = """() => {
  window.waits = [];
  let began = 0;
  document.addEventListener("keydown", (event) => { if (event.key === "Enter") began = performance.now(); }, true);
  document.body.addEventListener("htmx:afterSettle", () => requestAnimationFrame(() => requestAnimationFrame(
    () => window.waits.push(performance.now() - began))));
}"""


UNTIL = """(count) => new Promise((done) => {
  const look = () => { if (window.waits.length > count) done(); else setTimeout(look, 5); };
  look();
})"""


@dataclass(frozen=True)
class Session:
    """One campaign and the keys of one judgement in it. A key of several letters that is no key's name is typed."""

    name: str
    kinds: tuple[str, ...]
    runs: int
    keys: tuple[str, ...]
    options: dict[str, dict[str, str]] = field(default_factory=dict)
    has_rubric: bool = False


SESSIONS = (
    Session("comparison", ("pairwise",), 2, ("1", "Enter")),
    Session(
        "comparison, overall and by two criteria", ("pairwise",), 2, ("1", "5", "0", "Enter"),
        {"pairwise": {"by": "both"}}, has_rubric=True,
    ),
    Session("ranking of four", ("ranking",), 4, ("2", "1", "3", "3", "Enter")),
    Session("accept or reject", ("rating",), 1, ("a", "Enter")),
    Session("rating, 1 to 5", ("rating",), 1, ("4", "Enter"), {"rating": {"scale": "5"}}),
    Session("scores by two criteria", ("rubric",), 1, ("4", "3", "Enter"), has_rubric=True),
    Session("labels of four steps", ("step",), 1, ("j", "g", "g", "m", "b", "Enter")),
    Session("first error", ("step",), 1, ("j", "j", "e", "Enter"), {"step": {"mark": "first_error"}}),
    Session("a comment of 27 characters", ("comment",), 1, ("c", "It never asks for the order", "Control+Enter")),
)  # fmt: skip


def prepare(items: int) -> dict[str, int]:
    """Campaigns by the sessions' names. In a process whose settings are those of the installation."""
    import django

    django.setup()
    from apps.accounts.models import Role
    from apps.accounts.services import create_project, create_user, set_member
    from apps.annotation import services
    from apps.rubrics.services import CriterionDraft, save_rubric
    from tests.browser.desk import add_item

    user, _ = create_user(email=EMAIL, password=PASSWORD)
    project = create_project(slug="desk", name="Support desk")
    set_member(project=project, user=user, role=Role.ANNOTATOR, by=None)
    criteria = [CriterionDraft(name="polite", definition="Stays courteous."), CriterionDraft(name="correct")]
    rubric = save_rubric(project=project, name="Support", criteria=criteria)
    campaigns = {}
    for session in SESSIONS:
        campaign = services.create_campaign(
            project=project,
            name=session.name,
            feedback_types=session.kinds,
            options=session.options,
            rubric=rubric if session.has_rubric else None,
        )
        for number in range(items):
            said = [f"Run {letter} refunds it." for letter in "ABCD"[: session.runs]]
            add_item(campaign, f"{campaign.pk}-{number}", *said)
        campaigns[session.name] = campaign.pk
    return campaigns


def press(page: Page, session: Session) -> int:
    """The keys of one judgement; how many were struck."""
    struck = 0
    for key in session.keys:
        if len(key) > 1 and key not in ("Enter", "Control+Enter"):
            page.keyboard.type(key)
            struck += len(key)
        else:
            page.keyboard.press(key)
            struck += 1
    return struck


def judge(page: Page, url: str, session: Session, items: int) -> dict[str, Any]:
    page.goto(url)
    page.wait_for_load_state("networkidle")
    page.evaluate(ON_ENTER)
    struck = 0
    for number in range(items):
        struck = press(page, session)
        page.evaluate(UNTIL, number)
    waits: list[float] = page.evaluate("window.waits")
    page.get_by_text("All done").wait_for()
    return {
        "keys": struck,
        "judgements": len(waits),
        "wait_median_ms": round(median(waits), 1),
        "wait_p95_ms": round(quantiles(waits, n=20)[-1], 1),
    }


def measure(items: int) -> dict[str, Any]:
    with signed_in(EMAIL, "benchmarks.keyboard", str(items)) as (page, url, campaigns):
        return {
            session.name: judge(
                page, f"{url}/p/desk/campaigns/{campaigns[session.name]}/work/", session, items
            )
            for session in SESSIONS
        }


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.keyboard", description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true", help="few judgements: does it run?")
    parser.add_argument("--prepare", type=int, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.prepare:
        print(json.dumps(prepare(asked.prepare)))
        return 0
    found = measure(QUICK if asked.quick else FULL)
    if asked.json:
        print(json.dumps(found))
    else:
        print(f"{'':42}{'keys':>5}{'median ms':>11}{'p95 ms':>9}")
        for name, one in found.items():
            print(f"{name:42}{one['keys']:5}{one['wait_median_ms']:11}{one['wait_p95_ms']:9}")
    return 0


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "apps.config.settings")
    sys.exit(main())
