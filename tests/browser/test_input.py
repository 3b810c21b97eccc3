"""Writing and pressing keys on other keyboards, in other scripts, and with a clock that is wrong."""

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from apps.accounts.models import Project, User
from apps.annotation import services
from apps.annotation.models import Campaign
from tests.browser.desk import add_item, add_pair

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

HEBREW = "שלום, ההזמנה order 17 הוחזרה."
# Every clock of the page, five minutes slow.
SLOW = """
const right = Date;
Date = class extends right {
  constructor(...given) { given.length ? super(...given) : super(right.now() - 300_000); }
  static now() { return right.now() - 300_000; }
};
"""


def work(page: Page, live_server: Any, tools: Any, user: User, campaign: Campaign) -> None:
    tools.login(page, live_server, user)
    page.goto(f"{live_server.url}/p/desk/campaigns/{campaign.pk}/work/")
    page.wait_for_load_state()


def press(page: Page, **event: Any) -> None:
    """A key as a keyboard of another layout reports it; Playwright's is of the United States."""
    page.evaluate(
        "event => (document.activeElement ?? document.body).dispatchEvent("
        "new KeyboardEvent('keydown', {bubbles: true, cancelable: true, ...event}))",
        event,
    )


@pytest.mark.parametrize(
    "event",
    [
        {"key": "S", "code": "KeyS", "modifierCapsLock": True},
        {"key": "s", "code": "KeyS", "modifierCapsLock": True, "shiftKey": True},
        {"key": "ы", "code": "KeyS"},
        {"key": "σ", "code": "KeyS"},
        {"key": "s", "code": "Semicolon"},  # Dvorak
    ],
)
def test_letters(
    page: Page, live_server: Any, tools: Any, annotator: User, campaign: Campaign, event: Any
) -> None:
    work(page, live_server, tools, annotator, campaign)
    dialog = page.get_by_role("heading", name="Skip this item")
    for other in ({"key": "ś", "code": "KeyS", "modifierAltGraph": True}, {"key": "ś", "code": "KeyS"}):
        press(page, **other)
        expect(dialog).to_be_hidden()
    press(page, **event)
    if "shiftKey" in event:  # Shift with Caps Lock: the letter is S, as with Shift alone
        expect(dialog).to_be_hidden()
    else:
        expect(dialog).to_be_visible()


def test_digits_and_brackets(
    page: Page, live_server: Any, tools: Any, annotator: User, campaign: Campaign
) -> None:
    work(page, live_server, tools, annotator, campaign)
    press(page, key="&", code="Digit1")  # AZERTY
    expect(page.get_by_role("radio", name="A is much better")).to_be_checked()
    press(page, key="!", code="Digit1", shiftKey=True)  # of the United States: no digit
    press(page, key="é", code="Digit2")
    expect(page.get_by_role("radio", name="A is better", exact=True)).to_be_checked()
    fold = page.locator("#row-0 details").first
    press(page, key="]", code="Digit9", ctrlKey=True, altKey=True, modifierAltGraph=True)  # German, Windows
    expect(fold).to_have_attribute("open", "")
    press(page, key="[", code="Digit8", ctrlKey=True, altKey=True, modifierAltGraph=True)
    expect(fold).not_to_have_attribute("open", "")
    press(page, key="[", code="BracketLeft", ctrlKey=True)  # the browser's own
    press(page, key="x", code="KeyX", altKey=True)
    expect(page.get_by_role("radio", name="A is better", exact=True)).to_be_checked()


def test_keys_of_an_input_method_are_its_own(
    page: Page, live_server: Any, tools: Any, annotator: User, campaign: Campaign
) -> None:
    work(page, live_server, tools, annotator, campaign)
    page.keyboard.press("c")
    comment = page.get_by_role("textbox", name="Comment", exact=True)
    expect(comment).to_be_focused()
    session = page.context.new_cdp_session(page)
    session.send("Input.imeSetComposition", {"text": "へんじ", "selectionStart": 3, "selectionEnd": 3})
    press(page, key="Escape", code="Escape", isComposing=True)
    press(page, key="Escape", code="Escape", keyCode=229)
    press(page, key="Enter", code="Enter", isComposing=True, ctrlKey=True)
    expect(comment).to_be_focused()
    expect(page.locator("#comments")).to_have_attribute("open", "")
    session.send("Input.insertText", {"text": "返事"})
    expect(comment).to_have_value(re.compile("返事"))
    page.keyboard.press("Escape")
    expect(page.locator("#comments")).not_to_have_attribute("open", "")


def test_a_slow_clock_loses_no_draft(
    open_page: Any, live_server: Any, tools: Any, annotator: User, campaign: Campaign
) -> None:
    page = open_page()
    page.context.add_init_script(SLOW)
    work(page, live_server, tools, annotator, campaign)
    page.keyboard.press("c")
    page.keyboard.type("Half a thought")
    expect(page.get_by_text(re.compile(r"saved \d+ s ago"))).to_be_visible()
    page.watched.wrong_is_expected = True
    page.context.set_offline(True)
    page.get_by_role("textbox", name="Comment", exact=True).fill("A whole thought")
    expect(page.get_by_text("offline: kept here")).to_be_visible()
    again = page.context.new_page()
    page.close()
    again.context.set_offline(False)
    again.goto(f"{live_server.url}/p/desk/campaigns/{campaign.pk}/work/")
    expect(again.get_by_role("textbox", name="Comment", exact=True)).to_have_value("A whole thought")
    # The page that was closed may still have sent it; the browser keeps it until the server has it either way.
    again.wait_for_function(
        "() => !Object.keys(localStorage).some((key) => key.startsWith('touchstone-draft-'))"
    )
    saved = campaign.items.filter(assignments__draft__has_key="comment-0-text").get().assignments.get()
    assert saved.draft["comment-0-text"] == "A whole thought"


def test_bad_goes_on_and_its_correction_is_the_bad_ones(
    page: Page, live_server: Any, tools: Any, annotator: User, project: Project
) -> None:
    made = services.create_campaign(project=project, name="Steps", feedback_types=["step"])
    add_item(made, "refund-1", "Looking for it.", length=6)
    work(page, live_server, tools, annotator, made)
    for key in ("j", "b", "g", "b", "w"):
        page.keyboard.press(key)
    page.keyboard.type("Ask first.")
    checked = page.locator(".step-mark input:checked")
    assert checked.evaluate_all("marks => marks.map((mark) => mark.value)")[:4] == ["bad", "good", "bad", ""]
    texts = page.locator("textarea[name$=-correction]").evaluate_all("all => all.map((one) => one.value)")
    assert texts[:4] == ["", "", "Ask first.", ""]
    page.keyboard.press("Escape")
    page.keyboard.press("j")  # who moves on corrects what they see
    page.keyboard.press("w")
    page.keyboard.type("This one.")
    texts = page.locator("textarea[name$=-correction]").evaluate_all("all => all.map((one) => one.value)")
    assert texts[:5] == ["", "", "Ask first.", "", "This one."]


def test_words_are_read_from_where_they_begin(
    page: Page, live_server: Any, tools: Any, annotator: User, project: Project
) -> None:
    made = services.create_campaign(
        project=project, name="Pairs", feedback_types=["pairwise", "comment"], guidelines=HEBREW
    )
    add_pair(made, "17", HEBREW, f"{HEBREW} *Fine.*")
    work(page, live_server, tools, annotator, made)
    page.keyboard.press("c")
    page.get_by_role("textbox", name="Comment", exact=True).fill(HEBREW)
    # Where the first letter is drawn: at the right edge, or, of a latin text, at the left.
    first_letter = """element => {
      const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
      let node = walker.nextNode();
      while (node && !node.data.trim()) node = walker.nextNode();
      const range = document.createRange();
      const start = node.data.search(/\\S/);
      range.setStart(node, start);
      range.setEnd(node, start + 1);
      const letter = range.getBoundingClientRect(), box = element.getBoundingClientRect();
      return (letter.x + letter.width / 2 - box.x) / box.width;
    }"""
    for selector in (".work-guide .text", "#row-0 .step-text"):
        assert page.locator(selector).first.evaluate(first_letter) > 0.9, selector
    assert page.locator(".work-prefix, .work-task").first.is_visible()
    comment = page.get_by_role("textbox", name="Comment", exact=True)
    style = comment.evaluate("one => [getComputedStyle(one).unicodeBidi, one.dir]")
    assert style == ["plaintext", "auto"]
    tools.shoot(page, "work-right-to-left")


def test_markdown_of_changed_steps_and_of_guidelines(
    page: Page, live_server: Any, tools: Any, annotator: User, project: Project
) -> None:
    guide = "Prefer **short** answers:\n\n- one\n- two"
    made = services.create_campaign(
        project=project, name="Pairs", feedback_types=["pairwise"], guidelines=guide
    )
    text = "The order is **lost**; see `status` and [the page](https://x.test/a).\n\n1. Refund {}\n2. Write to them"
    add_pair(made, "17", text.format("all of it"), text.format("half of it"))
    work(page, live_server, tools, annotator, made)
    guidelines = page.locator(".work-guide .markdown")
    expect(guidelines.locator("strong")).to_have_text("short")
    expect(guidelines.locator("li")).to_have_count(2)
    changed = page.locator("#row-0 .step-text")
    for side in (0, 1):
        step = changed.nth(side)
        expect(step.locator("strong")).to_have_text("lost")
        expect(step.locator("code")).to_have_text("status")
        expect(step.locator("li")).to_have_count(2)
        (word,) = step.locator("mark").all_inner_texts()
        assert word.strip() in ("all", "half")
        expect(step).not_to_contain_text("**")
    tools.shoot(page, "work-markdown-changed")
