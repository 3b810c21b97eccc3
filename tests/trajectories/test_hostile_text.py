"""Texts that were found, or made, to keep a process busy: 100 kB and more of each kind in a bounded time.

Times are of this thread and very generous: the code before took minutes, or more memory than there is."""

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from apps.trajectories.formats.benchmarks import swe_agent
from apps.trajectories.rendering import marked, message_html, one_page, output_html, safe
from apps.trajectories.rendering.code import LANGUAGES, code_html, language_of
from apps.trajectories.rendering.markdown import markdown_html
from workers.induce.comment_points import split_into_points
from workers.llm.client import _object

_MOST = 5.0  # seconds
_SIZE = 120_000


def _timed(call: Callable[[], Any]) -> Any:
    began = time.thread_time()
    found = call()
    assert time.thread_time() - began < _MOST
    return found


@pytest.mark.parametrize("blank", ["\n", " \n", "\t\n", "\r\n", " "])
def test_a_message_of_line_breaks_is_shown(blank: str) -> None:
    for size in (40_000, _SIZE):
        text = f"a{blank * (size // len(blank))}b"
        _timed(lambda text=text: message_html(text))
        _timed(lambda text=text: output_html(text))


def test_an_issue_that_never_ends_is_imported() -> None:
    prompt = "\nISSUE:\n" * (_SIZE // 8)
    history = [{"role": "user", "content": prompt}, {"role": "assistant", "content": "r", "action": "ls"}]
    found = _timed(lambda: swe_agent.read({"trajectory": [], "history": history, "info": {}}))
    assert found.task.instruction == prompt


@pytest.mark.parametrize("answer", ['{"a": 1}', '<think>{"b": 2}</think>{"a": 1}', '{"a": 1}<think>'])
def test_an_answer_of_open_thoughts_is_read(answer: str) -> None:
    assert _timed(lambda: _object(answer + "<think>" * (10 * _SIZE // 7))) == {"a": 1}


@pytest.mark.parametrize("seed", [" ", "\n", ", ", ". ", "e.g. A ", ". (", '"(', " - ", ";", "but "])
def test_a_comment_of_one_thing_is_taken_apart(seed: str) -> None:
    _timed(lambda: split_into_points("a" + seed * (_SIZE // len(seed)) + "b"))


_MARKDOWN = [
    "*a_",
    "**a",
    "[a](",
    "![",
    "`` a",
    "[a]: b\n",
    "> ",
    "|a",
    "|-|-\n",
    "<a@",
    "&",
    "\\",
    "1. ",
    "- a\n ",
    "~~",
]


@pytest.mark.parametrize("seed", _MARKDOWN)
def test_markdown_grows_with_its_text(seed: str) -> None:
    _timed(lambda: markdown_html("a" + seed * (safe.MOST // len(seed) - 1)))


_CODE = ["{", "(((", "'", '"""', "/*", "<!--", "&amp", "a.", " \n", "$(", "<<A\n", "0x", "a: ", "//", "\\"]


@pytest.mark.long  # 15 s of CPU, and what it guards changes with a version of Pygments only
@pytest.mark.parametrize(
    "language", sorted(LANGUAGES - {"sh", "shell", "zsh", "py", "python3", "patch", "yml", "js", "ts"})
)
def test_code_grows_with_its_text(language: str) -> None:
    for seed in _CODE:
        _timed(lambda seed=seed: code_html("a" + seed * (12_000 // len(seed)), language))


def test_only_measured_languages_are_coloured() -> None:
    assert code_html("x = 1", "perl6") == "x = 1"
    assert language_of("a/b.py") == "python"
    assert language_of("/" * 1_000_000 + "a.zig") == ""


@pytest.mark.parametrize("seed", ["\x1b[", "\x1b]", "\x1b", "\x1b[1", "\x1b[31mx", "\x1b[0;", "\x1b[m"])
def test_terminal_output_grows_with_its_text(seed: str) -> None:
    for size in (safe.MOST, 5 * _SIZE):
        _timed(lambda size=size: output_html("\x1b[1m" + seed * (size // len(seed) - 2)))


@pytest.mark.parametrize("depth", [30, 900, 20_000])
def test_deep_json_is_shown(depth: int) -> None:
    _timed(lambda: message_html("[" * depth + "1" + "]" * depth))
    _timed(lambda: output_html('{"a":' * depth + "1" + "}" * depth))


def test_wide_json_is_shown() -> None:
    _timed(lambda: message_html(json.dumps([{"a": [index]} for index in range(4000)])))


@pytest.mark.parametrize("seed", ["a ", "a\n", "é", " ", "(", "a b c d e f g "])
def test_two_versions_are_compared(seed: str) -> None:
    long_text = seed * (_SIZE // len(seed))
    _timed(lambda: marked(long_text, f"x{long_text}"))
    _timed(lambda: marked(long_text[:12_000], f"x{long_text[1:11_000]}"))


def test_what_is_coloured_on_a_page_is_bounded_as_a_whole() -> None:
    text = "*a* " + "plain words " * 4000
    with one_page():
        shown = [markdown_html(text) for _ in range(9)]
    coloured = [html for html in shown if "<em>" in html]
    assert len(coloured) == safe.MOST_OF_A_PAGE // len(text)
    assert shown[-1] == text
    assert "<em>" in markdown_html(text)
