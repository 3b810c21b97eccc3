"""The viewer, two runs next to each other, the explorer and the comparison of agents, as they are used."""

import io
import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from apps.accounts.models import Project, User
from apps.trajectories.models import SavedView, Trajectory
from apps.trajectories.services import import_trajectories
from benchmarks.viewer import documents, long_document, read
from tests.trajectories.hostile import HOSTILE

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
PLAN = """I looked at the failing test. **Plan**:

1. Read `refunds.py`
2. Mend the comparison

```python
def late(order, today):
    return today > order.due  # not >=
```

| case | expected |
|------|----------|
| due today | not late |
| due yesterday | late |
"""
FAILED = (
    "\x1b[31mFAILED\x1b[0m tests/test_refunds.py::test_today\nAssertionError: assert True is False\n1 failed"
)
# What reaches beyond the right edge, but for what a scrolled or clipped box holds.
PAGES = 8  # of hostile texts
WIDEST = """document.documentElement.scrollWidth <= innerWidth ? [] : [...document.querySelectorAll('body *')]
    .filter((one) => one.getBoundingClientRect().right > innerWidth)
    .filter((one) => { for (let up = one; (up = up.parentElement); ) if (getComputedStyle(up).overflowX !== "visible")
        return up === document.body; return true; })
    .map((one) => one.outerHTML.slice(0, 99)).concat(["page"])"""
DIFF = """diff --git a/refunds.py b/refunds.py
--- a/refunds.py
+++ b/refunds.py
@@ -1,2 +1,2 @@
 def late(order, today):
-    return today >= order.due
+    return today > order.due
"""


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"id": name, "function": {"name": name, "arguments": json.dumps(arguments)}}


def bring(project: Project, *documents: dict[str, Any]) -> list[Trajectory]:
    stream = io.BytesIO(b"".join(json.dumps(document).encode() + b"\n" for document in documents))
    import_trajectories(project=project, stream=stream, by=None)
    return list(Trajectory.objects.filter(project=project).order_by("pk"))


def coder(
    version: str, *, command: str = "pytest -q tests/test_refunds.py", steps: int = 3, success: bool = True
) -> dict[str, Any]:
    """A run with something of everything."""
    orders = json.dumps(
        {"orders": [{"id": n, "due": "2030-01-0" + str(n), "total": 12.50} for n in range(1, 9)]}
    )
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "You mend programs. Use the tools; say when you are done."},
        {"role": "user", "content": "The refund is refused on the day it is due. Please mend it."},
        {
            "role": "assistant",
            "content": PLAN,
            "reasoning_content": "The boundary is the likely culprit.\nCheck the sign first.",
        },
        {"role": "assistant", "content": "", "tool_calls": [call("bash", command=command)]},
        {
            "role": "tool",
            "tool_call_id": "bash",
            "content": FAILED,
        },
        {"role": "assistant", "content": "", "tool_calls": [call("list_orders", limit=8, late=True)]},
        {"role": "tool", "tool_call_id": "list_orders", "content": orders},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [
                call(
                    "str_replace_editor",
                    path="refunds.py",
                    old_str="def late(order, today):\n    return today >= order.due",
                    new_str="def late(order, today):\n    return today > order.due",
                )
            ],
        },
        {"role": "tool", "tool_call_id": "str_replace_editor", "content": DIFF},
    ]
    for number in range(steps):
        messages += [
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [call("bash", command=f"git log -n {number + 1} --oneline")],
            },
            {"role": "tool", "tool_call_id": "bash", "content": f"commit {number}\n" * (number % 9 + 1)},
        ]
    messages.append(
        {"role": "assistant", "content": "Mended: a refund is late from the day **after** it is due."}
    )
    agent = {"name": "mender", "version": version}
    return {
        "task": {"id": "refund-7", "instruction": "Mend the refund."},
        "agent": agent,
        "success": success,
        "messages": messages,
    }


def rose_at(page: Page, live_server: Any, tools: Any, project: Project, path: str = "") -> str:
    researcher = User.objects.get(email="rose@example.org")
    tools.login(page, live_server, researcher)
    base = f"{live_server.url}/p/{project.slug}/trajectories/"
    page.goto(base + path)
    return base


def test_the_viewer(page: Page, live_server: Any, tools: Any, project: Project) -> None:
    [row] = bring(project, coder("1", steps=40))
    rose_at(page, live_server, tools, project, f"{row.pk}/")
    expect(page.locator("h1")).to_have_text("mender 1: refund-7")
    expect(page.locator(".lead .outcome")).to_have_text("success")
    expect(page.locator(".minimap .mark")).to_have_count(row.step_count)
    expect(page.locator(".step .markdown table")).to_be_visible()
    tools.shoot(page, "trajectory")
    page.keyboard.press("n")
    failed = page.locator(".step.is-current")
    expect(failed).to_contain_text("pytest -q")
    page.keyboard.press("j")
    expect(page.locator(".step.is-current")).to_contain_text("list_orders")
    page.keyboard.press("g")
    page.keyboard.type("44")
    page.keyboard.press("Enter")
    expect(page.locator(".step.is-current")).to_have_attribute("data-step", "44")
    expect(page.locator(".step.is-current")).to_be_in_viewport()
    assert page.url.endswith(f"?step=44#t{row.pk}-s44")
    page.keyboard.press("/")
    page.keyboard.type("git log -n 30")
    expect(page.locator("#found li")).to_have_count(1)
    page.locator("#found a").click()
    expect(page.locator(".step.is-current")).to_contain_text("git log -n 30")
    page.keyboard.press("]")
    assert page.locator(".steps > .step details:not([open])").count() == 0
    page.reload()
    expect(page.locator(".step.is-current")).to_contain_text("git log -n 30")


def test_a_step_is_discussed_and_tagged_where_it_is_read(
    page: Page, live_server: Any, tools: Any, project: Project
) -> None:
    [row] = bring(project, coder("1", steps=40))
    base = rose_at(page, live_server, tools, project, "?agent=mender")
    page.locator(".explorer-task a").first.click()
    expect(page.get_by_role("group", name="In the list")).to_be_visible()
    step = page.locator(f"#t{row.pk}-s3")
    step.hover()
    step.get_by_role("link", name="Comment").click()
    expect(page.get_by_label("Comment", exact=True)).to_be_focused()
    page.keyboard.type("Why this file? @rose")
    page.get_by_label("Praise or blame").select_option("Bad")
    page.get_by_role("button", name="Comment", exact=True).click()
    expect(step.locator(".comment-text")).to_have_text("Why this file? @rose")
    comment = page.locator("#comments .comment")
    expect(comment).to_contain_text("step 3")
    comment.get_by_text("Edit", exact=True).click()
    comment.locator("textarea").fill("Why this file at all?")
    comment.get_by_role("button", name="Save").click()
    expect(step.locator(".comment-text")).to_have_text("Why this file at all?")
    page.keyboard.press("t")
    page.keyboard.type("to read")
    page.keyboard.press("Enter")
    expect(page.locator("#tags .tag")).to_contain_text("to read")
    tools.shoot(page, "trajectory-comments")
    page.once("dialog", lambda dialog: dialog.accept())
    page.locator("#comments").get_by_role("button", name="Delete").click()
    expect(page.locator("#comments .comment")).to_have_count(0)
    expect(step.locator(".comment-text")).to_have_count(0)
    page.locator("#rail-rewards summary").click()
    expect(page.get_by_text("No endpoint is deployed and there is no model.")).to_be_visible()
    step.hover()
    page.evaluate("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
    step.get_by_role("button", name="Copy link").click()
    expect(page.get_by_text("Link to step 3 copied.")).to_be_visible()
    assert page.evaluate("copied") == f"{base}{row.pk}/?step=3#t{row.pk}-s3"


def test_a_link_opens_a_long_trajectory_at_its_step(
    page: Page, live_server: Any, tools: Any, project: Project
) -> None:
    [row] = bring(project, long_document(1_501))
    base = rose_at(page, live_server, tools, project)
    for address in (f"{row.pk}/?step=1499#t{row.pk}-s1499", f"{row.pk}/#t{row.pk}-s1499"):
        page.goto("about:blank")
        page.goto(base + address)
        expect(page.locator(f"#t{row.pk}-s1499")).to_be_in_viewport()
        expect(page.locator(".step.is-current")).to_have_attribute("data-step", "1499")
    expect(page.locator(".minimap .mark")).to_have_count(376)  # four steps each
    page.keyboard.press("p")
    expect(page.locator(".step.is-current")).to_have_attribute("data-step", "1401")
    expect(page.locator(".step.is-current")).to_be_in_viewport()
    tools.shoot(page, "trajectory-long")


def test_the_viewer_without_a_script(
    open_page: Callable[..., Page], live_server: Any, tools: Any, project: Project
) -> None:
    page = open_page(java_script_enabled=False)
    [row] = bring(project, coder("1", steps=40))
    rose_at(page, live_server, tools, project, f"{row.pk}/")
    expect(page.locator(".step")).to_have_count(20)
    page.get_by_role("link", name="Later steps").press("Enter")
    expect(page.locator(".step").first).to_have_attribute("data-step", "20")
    page.get_by_label("Comment", exact=True).fill("Without a script.")
    page.get_by_role("button", name="Comment", exact=True).click()
    expect(page.locator("#comments .comment-text")).to_have_text("Without a script.")
    page.get_by_placeholder("Search all steps").fill("git log -n 30")
    page.keyboard.press("Enter")
    expect(page.locator("#found li")).to_have_count(1)
    page.locator("#found a").click()
    expect(page.locator(".step").filter(has_text="git log -n 30")).to_be_visible()


def test_steps_with_times_are_drawn_as_a_timeline(
    page: Page, live_server: Any, tools: Any, project: Project
) -> None:
    steps: list[dict[str, Any]] = [
        {"step_id": 1, "timestamp": "2030-01-01T10:00:00Z", "source": "user", "message": "Refund order 7."}
    ]
    for number in range(2, 12):
        metrics = {"prompt_tokens": 1000 * number, "completion_tokens": 9, "cost_usd": 0.01, "seconds": 2.5}
        steps.append(
            {
                "step_id": number,
                "timestamp": f"2030-01-01T10:00:{number * 4:02}Z",
                "source": "agent",
                "message": f"Look {number}.",
                "metrics": metrics,
            }
        )
    document = {"schema_version": "ATIF-v1.4", "session_id": "s", "agent": {"name": "a", "version": "1"}}
    [row] = bring(project, document | {"steps": steps})
    rose_at(page, live_server, tools, project, f"{row.pk}/")
    expect(page.locator("#rail-usage")).to_contain_text("$0.10")
    expect(page.locator(".step-usage").first).to_contain_text("2.5 s")
    page.get_by_role("link", name="Timeline").click()
    expect(page.locator(".timeline tbody tr")).to_have_count(11)
    expect(page.get_by_text("11 steps in 46.5 s")).to_be_visible()
    tools.shoot(page, "trajectory-timeline")
    page.get_by_role("link", name="JSON", exact=True).click()
    expect(page.locator("#json-text")).to_contain_text("ATIF-v1.4")
    tools.shoot(page, "trajectory-json")


def test_two_runs_beside_each_other(page: Page, live_server: Any, tools: Any, project: Project) -> None:
    left, _ = bring(
        project, coder("1"), coder("2", command="pytest -q tests/test_orders.py", steps=5, success=False)
    )
    rose_at(page, live_server, tools, project, f"{left.pk}/")
    page.get_by_text("More like this").click()
    page.get_by_text("Compare with another trajectory").click()
    page.locator(".viewer-others .rail-more a").click()
    expect(page.get_by_text("3 equal steps", exact=True)).to_be_visible()
    assert (
        page.locator(".work-row mark").all_inner_texts() == ["refunds", "orders"]
        or page.locator(".work-row mark").count() >= 2
    )
    page.keyboard.press("n")
    expect(page.locator(".work-row.is-current")).to_contain_text("pytest")
    expect(page.locator(".work-walk-count")).to_have_text(re.compile("difference 1 of"))
    page.locator(".work-prefix summary").click()
    expect(page.locator(".work-prefix .step")).to_have_count(3)
    tools.shoot(page, "trajectories-side-by-side")


def test_the_explorer(page: Page, live_server: Any, tools: Any, project: Project) -> None:
    bring(
        project,
        coder("1"),
        coder("2", steps=6, success=False),
        *(coder("3", command=f"make test-{n}", steps=n) for n in range(9)),
    )
    base = rose_at(page, live_server, tools, project)
    page.keyboard.press("/")
    page.keyboard.type('"test_refunds py"')
    page.keyboard.press("Enter")
    expect(page.locator("[data-row]")).to_have_count(11)
    page.select_option("#id_success", "no")
    page.get_by_role("button", name="Filter").click()
    expect(page.locator("[data-row]")).to_have_count(1)
    page.get_by_text("Save as view").click()
    page.fill("#view-name", "Failed refunds")
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".saved-view a")).to_have_text("Failed refunds")
    assert SavedView.objects.get().query == "text=%22test_refunds+py%22&success=no"
    page.locator("[data-row] input[type=checkbox]").check()
    page.get_by_placeholder("Tag").fill("to read")
    page.get_by_role("button", name="Add tag").click()
    expect(page.locator("[data-row] .tag")).to_have_text("to read")
    page.goto(base)
    tools.shoot(page, "explorer")
    page.get_by_role("main").get_by_role("link", name="Agents", exact=True).click()
    tools.shoot(page, "agents")
    page.get_by_label("Select mender 1", exact=True).check()
    page.get_by_label("Select mender 2", exact=True).check()
    page.get_by_role("button", name="Compare two").click()
    expect(page.get_by_role("heading", name="1 common task")).to_be_visible()
    tools.shoot(page, "agents-compared")
    page.get_by_role("link", name="side by side").click()
    expect(page.locator(".outcome.bad")).to_be_visible()


def test_runs_of_a_task_as_a_tree(page: Page, live_server: Any, tools: Any, project: Project) -> None:
    runs = [coder("2", command=f"pytest -q -k {n % 2}", steps=n, success=n > 2) for n in range(6)]
    rows = bring(project, coder("1"), *runs)
    base = rose_at(page, live_server, tools, project, f"{rows[0].pk}/")
    page.get_by_text("More like this").click()
    page.get_by_role("link", name="Trajectory tree of this task").press(
        "Enter"
    )  # what is loaded below moves it
    expect(page.get_by_text("7 trajectories", exact=True)).to_be_visible()
    expect(page.locator(".branch-end")).to_have_count(7)
    page.get_by_role("link", name="Show outcomes").click()
    tools.shoot(page, "task-tree")
    page.locator(".branch-step").nth(3).click()
    page.wait_for_url(re.compile(rf"{base}\d+/#t\d+-s\d+"))
    expect(page.locator(".step.is-current")).to_be_in_viewport()


def test_the_risks_of_steps_are_drawn(page: Page, live_server: Any, tools: Any, project: Project) -> None:
    count = 5 + 100  # agent steps
    risks = {"leaves the <b>branch</b>": [0.0] * count, "data loss": [n / count for n in range(count)]}
    [row] = bring(project, coder("1", steps=100) | {"metadata": {"risks": risks}})
    rose_at(page, live_server, tools, project, f"{row.pk}/")
    drawn = page.locator(".risk-map tr")
    expect(drawn).to_have_count(2)
    expect(drawn.filter(has_text="<b>branch</b>").locator("a")).to_have_count(60)
    loss = drawn.filter(has_text="data loss")
    expect(loss).to_contain_text("0.99")
    tools.shoot(page, "trajectory-risks")
    loss.locator("a").last.click()
    expect(page.locator(".step.is-current")).to_have_attribute("data-step", str(row.step_count - 1))


def test_a_long_one_is_scrolled_to_its_end(
    page: Page, live_server: Any, tools: Any, project: Project
) -> None:
    """By what `benchmarks.viewer` measures at full size."""
    left, right, _ = bring(project, *documents(60, 100_000))
    base = rose_at(page, live_server, tools, project)
    one, pair = read(page, f"{base}{left.pk}/"), read(page, f"{base}{left.pk}/compare/{right.pk}/")
    assert one["steps"] == left.step_count and pair["steps"] >= 2 * left.step_count - 4
    assert one["first_content_ms"] > 0 and pair["frames"] > 0


def hostile(text: str, number: int) -> dict[str, Any]:
    """The text in every field there is."""
    made = {
        "id": text,
        "function": {
            "name": text,
            "arguments": json.dumps({text: text, "path": text, "deep": {text: [text] * 30}}),
        },
    }
    raw = {"id": "raw", "function": {"name": "bash", "arguments": text}}
    messages = [
        {"role": "system", "content": text},
        {
            "role": "user",
            "content": [{"type": "text", "text": text}, {"type": "image_url", "image_url": {"url": text}}],
        },
        {
            "role": "assistant",
            "content": text,
            "reasoning_content": text,
            "tool_calls": [made, raw],
            "name": text[:150],
        },
        {"role": "tool", "tool_call_id": text, "content": text},
        {"role": "tool", "tool_call_id": "raw", "content": text, "name": text},
        {"role": "assistant", "content": f"{text} {number}"},
    ]
    short = text[:150]
    task = {"id": f"{number} {short}", "instruction": text, "reference": text}
    agent = {"name": short, "version": short}
    return {
        "id": f"{number} {short}",
        "task": task,
        "agent": agent,
        "metadata": {text: text},
        "messages": messages,
    }


def test_hostile_text_never_runs_and_stays_in_its_place(
    page: Page, live_server: Any, tools: Any, project: Project
) -> None:
    # Several on a page, for time's sake; each alone goes through test_rendering.py and test_hostile_formats.py.
    texts = ["\n\n".join(HOSTILE[start::PAGES]) for start in range(PAGES)]
    rows = bring(project, *(hostile(text, number) for number, text in enumerate(texts)))
    assert len(rows) == PAGES
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.add_init_script(
        "window.hits = []; window.hit = (what) => window.hits.push(what); window.alert = window.hit;"
    )
    base = rose_at(page, live_server, tools, project)
    Trajectory.objects.update(tags=["<img src=x onerror=hit('tag')>"])
    paths = ["", "agents/", "?text=script"]
    for number, (before, row) in enumerate(zip([rows[-1], *rows], rows, strict=False)):
        paths.append(f"{row.pk}/?show_outcome=1")
        others = [f"{row.pk}/compare/{before.pk}/", f"{row.pk}/find/?find=hit", f"tasks/{row.task_id}/"]
        paths.append(others[number % len(others)])
    for path in paths:
        page.goto(base + path)
        assert page.evaluate("window.hits") == [], path
        assert page.url == base + path
        # Nothing that someone wrote reaches out of the page, or lies over what is ours.
        wide = page.evaluate(WIDEST)
        assert not wide, f"{path}: {wide}"
        top = page.evaluate("document.elementFromPoint(60, 20)?.closest('header, nav, .bar') !== null")
        assert top or "find/" in path, path
    page.goto(f"{base}upload/")
    documents = b"".join(
        json.dumps(hostile(text, number + 1000)).encode() + b"\n" for number, text in enumerate(HOSTILE)
    )
    page.set_input_files(
        "input[type=file]",
        {"name": "<img src=x onerror=hit('name')>.jsonl", "mimeType": "text/plain", "buffer": documents},
    )
    page.locator("main form button").first.click()
    expect(page.locator(".trajectory-preview").first).to_be_visible()
    assert page.evaluate("window.hits") == [] and not page.evaluate(WIDEST)
    for row in rows[:6]:
        page.goto(f"{base}{row.pk}/")
        for link in page.locator(".step a[href]:not(.step-number, .step-action)").all():
            assert re.match(r"https?://|mailto:|/p/desk/", link.get_attribute("href") or ""), link
    strangers = {url for url in asked if not url.startswith((live_server.url, "data:"))}
    assert not strangers
