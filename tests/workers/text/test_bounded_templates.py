"""Chat templates of others: the text of transformers, and an error where they would not end or fill the memory."""

import time
from typing import Any

import pytest
from jinja2 import TemplateError
from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

from workers.errors import RewardError
from workers.schema import Part, Step, Task, Text, Trajectory
from workers.text.bounded_templates import MOST_CHARACTERS, render_chat
from workers.text.conversations import ConversationRenderer

CALL = {"name": "find", "arguments": {"x": [1, "y"]}}
CHAT: list[dict[str, Any]] = [
    {"role": "user", "content": "Hi\nthere"},
    {
        "role": "assistant",
        "content": "",
        "reasoning_content": "because",
        "tool_calls": [{"id": "c1", "type": "function", "function": CALL}],
    },
    {"role": "tool", "content": "found"},
]
TWICE = "{% set ns = namespace(x=START) %}{% for a in range(60) %}{% set ns.x = MORE %}{% endfor %}"


@pytest.fixture(scope="module")
def tokenizer() -> PreTrainedTokenizerBase:
    words = Tokenizer(models.WordLevel({"a": 0, "<s>": 1}, unk_token="a"))
    return PreTrainedTokenizerFast(tokenizer_object=words, bos_token="<s>", eos_token="<s>")


@pytest.mark.parametrize(
    "template",
    [
        "{% for m in messages %}{{ bos_token ~ m.role ~ ': ' + (m.content|trim) }}{{ '\\n' * 2 }}"
        "{% if m.thinking %}<{{ m.thinking }}>{% endif %}"
        "{% for c in m.tool_calls or [] %}{{ c.function.arguments|tojson }}{{ c.function|tojson(indent=2) }}"
        "{% endfor %}{% endfor %}{% if tools %}tools{% endif %}{{ lost }}",
        "{% macro show(m, n) -%} {{ m.role|upper }}{{ n }}{{ 'x' ~ n ~ none }} {%- endmacro %}"
        "{% set ns = namespace(text='', n=0) %}"
        "{% for m in messages[::-1] if m.content %}{% set ns.n = ns.n + 1 %}"
        "{% set ns.text = ns.text ~ m.content.replace('i', 'oo').split('\\n')[0] %}{{ show(m, loop.index0) }}"
        "{% if loop.index > 1 %}{% break %}{% endif %}{% endfor %}{{ ns.text }}{{ ns.n * 3 }}{{ 2 ** 5 }}",
        "{{ '%s-%02d' % ('a', 3) }}{{ '{:>4}'.format('a') }}{{ messages|map(attribute='role')|join(', ') }}"
        "{{ messages }}{{ range(3)|list }}{{ dict(a=1) }}{% generation %}z{% endgeneration %}{{ [1] + [2] }}"
        "{% set b %}{{ messages|length }}{% endset %}{{ b }}{{ 'a\\nb'|indent(2) }}{{ 'q'|center(9) }}",
    ],
)
def test_the_text_is_that_of_transformers(tokenizer: PreTrainedTokenizerBase, template: str) -> None:
    expected = tokenizer.apply_chat_template(CHAT, chat_template=template, tokenize=False)
    assert render_chat(tokenizer, template, CHAT) == expected


@pytest.mark.parametrize(
    "template",
    [
        "{{ 'a' * 10**10 }}",
        "{{ messages[0].content * 10**9 }}",
        "{% for a in range(90000) %}{% for b in range(90000) %}{% endfor %}{% endfor %}",
        "{% for a in range(90000) %}{% for b in range(90000) if false %}{% endfor %}{% endfor %}",
        TWICE.replace("START", "'aaaaaaaa'").replace("MORE", "ns.x ~ ns.x"),
        TWICE.replace("START", "'aaaaaaaa'").replace("MORE", "ns.x + ns.x"),
        TWICE.replace("START", "['a']").replace("MORE", "[ns.x, ns.x]") + "{{ ns.x }}",
        TWICE.replace("START", "['a']").replace("MORE", "[ns.x, ns.x]") + "{{ ns.x|tojson }}",
        "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(60) }}",
        "{% macro f(n) %}{{ f(n + 1) }}{% endmacro %}{{ f(0) }}",
        "{{ 'a'|center(10**10) }}{{ 'a'.ljust(10**10) }}",
        "{{ 'a'.ljust(10**10) }}",
        "{{ '%09999999999d' % 1 }}",
        "{{ '{:>9999999999}'.format(1) }}",
        "{{ '{:{}}'.format(1, 10**10) }}",
        "{{ ('a' * 100000).replace('a', 'b' * 100000) }}",
        "{{ ('b' * 100000).join('a' * 100000) }}",
        "{{ messages|tojson(indent=10**9) }}",
        "{{ 1 / 0 }}",
        "{{ messages|first|round }}",
        "a" * (MOST_CHARACTERS + 1),
    ],
    ids=range(21),
)
def test_a_template_that_costs_too_much_is_an_error(
    tokenizer: PreTrainedTokenizerBase, template: str
) -> None:
    began = time.process_time()
    with pytest.raises(TemplateError):
        render_chat(tokenizer, template, CHAT)
    assert time.process_time() - began < 10


def test_a_renderer_refuses_it_in_words(tokenizer: PreTrainedTokenizerBase) -> None:
    fails = (
        "{% for m in messages %}{{ m.content }}{% if 'zero' in m.content %}{{ 1 / 0 }}{% endif %}{% endfor %}"
    )
    renderer = ConversationRenderer(tokenizer, 100, template=fails)
    assert renderer.render(Text("zero")).tokens
    with pytest.raises(RewardError, match="cannot show this trajectory: ZeroDivisionError"):
        renderer.render(
            Trajectory(
                steps=tuple(
                    Step(source=source, message=(Part(text="zero"),)) for source in ("user", "agent")
                ),
                task=Task(id=""),
            )
        )
