"""Texts as HTML: what is shown, and that nothing of it can be more than text."""

from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.trajectories.card_rendering import render_step_card
from apps.trajectories.rendering import arguments_of, marked, marked_html, message_html, output_html
from apps.trajectories.rendering.safe import MOST
from tests.trajectories.hostile import HOSTILE
from workers.schema import Part, Step, ToolCall

TAGS = {
    "a",
    "blockquote",
    "br",
    "code",
    "del",
    "details",
    "div",
    "em",
    "hr",
    "li",
    "mark",
    "ol",
    "p",
    "pre",
    "s",
}
TAGS |= {"span", "strong", "summary", "table", "tbody", "td", "th", "thead", "tr", "ul"}
ATTRIBUTES = {"class", "dir", "open", "start"}
LINK = {"href", "target", "rel"}


class Checked(HTMLParser):
    """Fails for a tag or attribute that no text of ours makes; keeps the words."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.words: list[str] = []
        self.depth = 0
        self.feed(html)
        self.close()
        assert self.depth == 0, "every element is closed in its place"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in TAGS, tag
        for name, value in attrs:
            assert name in (ATTRIBUTES | LINK if tag == "a" else ATTRIBUTES), (tag, name)
            assert name != "href" or str(value).startswith(("http://", "https://", "mailto:")), value
        self.depth += tag not in ("br", "hr")

    def handle_endtag(self, tag: str) -> None:
        self.depth -= tag not in ("br", "hr")
        assert self.depth >= 0

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)

    def handle_decl(self, decl: str) -> None:
        raise AssertionError(decl)


def text_of(html: str) -> str:
    return "".join(Checked(html).words)


def every_way(text: str) -> list[str]:
    ways = [message_html(text), output_html(text), marked(text, "something else"), marked(text, text[:-1])]
    for tool, name in (("bash", "command"), ("python", "code"), ("edit", "patch"), ("t", text), (text, "q")):
        ways += [argument.html for argument in arguments_of(tool, {name: text, "path": f"{text}.py"}, None)]
        ways += [argument.html for argument in arguments_of(tool, {name: {"a": [text, {text: text}]}}, 50)]
        ways += [argument.html for argument in arguments_of(tool, text, None)]
    return ways


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_text_is_text(text: str) -> None:
    for html in every_way(text):
        Checked(html)


PIECES = [*"<>&\"'`*_[](){}|#-+:/\\\n\t\r =0a\x1bm;", "\u202e", "http://", "script", "](", "```", "\x1b["]


@given(st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
def test_any_text_is_text(text: str) -> None:
    for html in every_way(text):
        Checked(html)


def test_markdown() -> None:
    html = message_html("# Plan\n**Find** `x`\n- one\n- two\n\n[here](https://example.org/a?b=1&c=2)")
    assert '<p class="heading heading-1">Plan</p>' in html
    assert "<strong>Find</strong> <code>x</code>" in html
    assert html.count("<li>") == 2
    assert 'href="https://example.org/a?b=1&amp;c=2"' in html and "noopener noreferrer" in html
    assert '<span class="k">def</span>' in message_html("```python\ndef f(): ...\n```")


@pytest.mark.parametrize("text", ["plain words", "two\nlines", "is 1 = 2?"])
def test_plain_text_stays_as_it_is(text: str) -> None:
    assert text_of(message_html(text)) == text


def test_no_image_and_no_address_of_ours() -> None:
    html = message_html("![x](https://evil.example/p.png) [y](/p/desk/) [z](javascript:alert(1))")
    assert (
        "<img" not in html
        and 'href="/p' not in html
        and "javascript:" not in html.replace("(javascript:", "")
    )


def test_numbers_and_keys_of_json_stay_as_written() -> None:
    text = '{"b": 1.50, "a": 10000000000000000000001, "e": 1e5, "s": "\\u00e9"}'
    found = text_of(output_html(text))
    assert '"b": 1.50' in found and "10000000000000000000001" in found and "1e5" in found and "é" in found
    assert found.index('"b"') < found.index('"a"')


def test_long_json_is_a_tree() -> None:
    html = output_html('{"rows": [' + ",".join('{"id": 1, "note": "a\\nb"}' for _ in range(20)) + "]}")
    assert html.count("<details") == 21 and "[20]" in html and "a\nb" in html
    many = output_html(str(list(range(1200))))
    assert "and 700 more" in many
    deep = output_html("[" * 400 + "1" + "]" * 400)
    assert text_of(deep)


@pytest.mark.parametrize("text", ['{"a": }', "[1, 2", "{}", "[]", "{x}", "[" * 100_000 + "]" * 100_000])
def test_what_is_no_json_is_text(text: str) -> None:
    assert text_of(output_html(text)) == text


def test_a_diff_has_its_signs_coloured() -> None:
    html = output_html("diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new")
    assert '<span class="gd">-old</span>' in html and '<span class="gi">+new</span>' in html
    assert "<span" not in output_html("--- a heading ---\n- a list\n+ of things")


def test_terminal_output() -> None:
    html = output_html("\x1b[1;31mError\x1b[0m: <b>\r\n\x1b]8;;http://x\x07link\x1b]8;;\x07 \x1b[2K10%\r20%")
    assert '<span class="ansi-bold ansi-fg-1">Error</span>: &lt;b&gt;' in html
    assert text_of(html) == "Error: <b>\nlink 10%\n20%"
    assert text_of(output_html("\x1b[1m" + "x" * MOST)) == "x" * MOST


def test_direction_is_written_out() -> None:
    for html in every_way("a\u202eb"):
        assert "\u202e" not in html
    assert "[U+202E]" in message_html("a\u202eb")


@pytest.mark.parametrize(
    ("tool", "arguments", "part"),
    [
        ("bash", {"command": "echo hi"}, '<span class="nb">echo</span>'),
        ("execute_python", "import os", '<span class="kn">import</span>'),
        (
            "str_replace_editor",
            {"path": "a.py", "new_str": "x = 1\ndef f(): ..."},
            '<span class="k">def</span>',
        ),
        ("query", {"sql": "SELECT 1"}, '<span class="k">SELECT</span>'),
        ("book", {"seats": 2, "window": True}, '<span class="kc">true</span>'),
        ("book", {"who": {"name": "Ann"}}, '<span class="nt">"name"</span>'),
    ],
)
def test_arguments_are_what_they_are(tool: str, arguments: Any, part: str) -> None:
    assert part in "".join(argument.html for argument in arguments_of(tool, arguments, None))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("old_string", "new_string"),
        ("old_str", "new_str"),
        ("oldString", "newString"),
        ("oldText", "newText"),
    ],
)
def test_an_edit_of_a_file_is_a_diff(old: str, new: str) -> None:
    before, after = "import os\nx = 1\ny = 2\nend", "import os\nx = 3\ny = 4\nend\nmore"
    path, edit, all_of_them = arguments_of(
        "Edit", {"file_path": "a.py", old: before, new: after, "all": True}, None
    )
    assert (path.name, edit.name, all_of_them.name) == ("file_path", f"{old} → {new}", "all")
    assert edit.text.split("\n") == [" import os", "-x = 1", "-y = 2", "+x = 3", "+y = 4", " end", "+more"]
    assert '<span class="gd">-x = 1' in edit.html
    assert '<span class="gi">+more' in edit.html


def test_several_edits_are_a_diff_each_with_what_else_they_say() -> None:
    edits = [
        {"old_string": "a", "new_string": ""},
        {"old_string": "b", "new_string": "c", "replace_all": True},
    ]
    found = arguments_of("MultiEdit", {"file_path": "a.py", "edits": edits}, None)
    assert [argument.text for argument in found] == ["a.py", "-a", "-b\n+c", "true"]


def test_a_text_without_its_other_side_is_no_edit() -> None:
    assert [
        argument.name for argument in arguments_of("view", {"old_string": "a", "new_string": None}, None)
    ] == [
        "old_string",
        "new_string",
    ]
    assert arguments_of("x", {"edits": [{"old_string": "a", "new_string": "b"}, 5]}, None)[0].name == "edits"


def test_an_edit_of_very_many_lines_is_not_compared_line_by_line() -> None:
    text = "\n".join(map(str, range(5000)))
    [edit] = arguments_of("Edit", {"old_string": text, "new_string": text + "\nx"}, 40)
    assert edit.text.startswith("-0\n-1\n")
    assert edit.hidden > 50_000


def test_arguments_are_cut_and_say_so() -> None:
    [only_argument] = arguments_of("write", {"text": "x" * 100}, 30)
    assert (only_argument.text, only_argument.hidden) == ("x" * 30, 70)
    card = render_step_card(
        Step(source="agent", tool_calls=(ToolCall(name="w", arguments={"t": "x" * 6000}),)), 0, 0
    )
    assert card.hidden == 2000


@pytest.mark.parametrize(("length", "hidden"), [(4_000, 0), (4_002, 0), (5_000, 0), (5_001, 1_001)])
def test_a_text_is_truncated_only_where_that_hides_much(length: int, hidden: int) -> None:
    message = (Part(text="x" * length),)
    card = render_step_card(
        Step(
            source="agent",
            message=message,
            reasoning="x" * length,
            tool_calls=(ToolCall(name="w", arguments={"t": "x" * length}),),
        ),
        0,
        0,
    )
    assert card.hidden == 3 * hidden


def test_words_that_differ_are_marked() -> None:
    assert (
        marked("fly to Paris on Monday", "fly to London on Monday") == "fly to <mark>Paris </mark>on Monday"
    )
    assert marked("<b> x", "<i> x") == "&lt;<mark>b</mark>&gt; x"
    assert marked("nothing alike", "1 2 3") == "nothing alike"
    lines = "some words in a line\n" * 1000
    assert marked(f"{lines}more\n", lines) == f"{lines}<mark>more\n</mark>"
    assert "<mark>" not in marked("a\n" * 10_000, "a\n" * 10_001)


def test_two_versions_of_a_step_mark_each_other() -> None:
    def step(city: str) -> Step:
        call = ToolCall(name="fly", arguments={"to": f"the city of {city}", "seats": 2})
        return Step(source="agent", message=(Part(text=f"I fly to {city} now."),), tool_calls=(call,))

    ours, theirs = render_step_card(step("Paris"), 3, 1), render_step_card(step("Rome"), 4, 1)
    card = ours.with_differences(theirs)
    assert card.calls[0].arguments[0].html == "the city of <mark>Paris</mark>"
    assert "<mark>" not in card.calls[0].arguments[1].html
    assert card.texts[0].html == "I fly to <mark>Paris </mark>now."
    assert "<mark>" not in ours.texts[0].html


def test_words_that_differ_are_marked_within_what_is_rendered() -> None:
    ours, other = (message_html(text) for text in ("Fly **to Paris** & back.", "Fly **to Rome** & back."))
    assert marked_html(ours, other) == ours.replace("Paris", "<mark>Paris</mark>")
    lists = [message_html(f"- one\n- {text}\n- three") for text in ("two", "2 and [a](https://x.test/b)")]
    assert marked_html(lists[0], lists[1]) == lists[0].replace("two", "<mark>two</mark>")
    # A mark never reaches over a tag, and text that only looks like one stays text.
    found = marked_html(lists[1], lists[0])
    assert "<mark>2 and </mark><a " in found and "<mark>a</mark></a>" in found
    hostile = message_html('x [a](https://x.test/?"><img>) <b>&lt; `<i>` y')
    assert marked_html(hostile, message_html("x y")).replace("<mark>", "").replace("</mark>", "") == hostile
