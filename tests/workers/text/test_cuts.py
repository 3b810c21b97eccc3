"""What is left out of too long inputs: no more than it takes, and the same of a task for all answers to it."""

import pytest

from benchmarks.chat_templates import template_text
from tests.workers.decoders import CHATML, tokenizer
from workers.engine.group_cuts import cut_groups_alike
from workers.schema import ScoreInput, Task, Text, Trajectory, from_messages, parse_item
from workers.text import ConversationRenderer
from workers.text.chunks import ChunkRenderer

WORDS = "hello the order was sent or lost, a refund is good and bad; "


def renderer(max_tokens: int = 400, name: str | None = None) -> ConversationRenderer:
    return ConversationRenderer(tokenizer(CHATML if name is None else template_text(name)), max_tokens)


def answered(prompt: str, answer: str) -> Trajectory:
    messages = [{"role": "user", "content": prompt}, {"role": "assistant", "content": answer}]
    return Trajectory(steps=from_messages(messages), task=Task(id=""))


def chunk_renderer(max_tokens: int) -> ChunkRenderer:
    made = tokenizer().backend_tokenizer
    return ChunkRenderer(made, before=(0,), after=(1,), chunk_tokens=16, max_tokens=max_tokens)


def test_one_token_too_many_costs_little_more_than_one() -> None:
    wide, narrow = renderer(4000), renderer(400)
    prompt = WORDS * 40
    while wide.render(answered(prompt, "It was sent.")).tokens > 401:
        prompt = prompt[:-1]
    assert wide.render(answered(prompt, "It was sent.")).tokens == 401
    rendered = narrow.render(answered(prompt, "It was sent."))
    assert rendered.truncated
    assert 360 <= rendered.tokens <= 400
    assert rendered.cut == 401 - rendered.tokens


def test_the_task_gets_what_the_answer_leaves() -> None:
    narrow = renderer(400)
    sizes = []
    for count in (1, 4, 8, 40):
        rendered = narrow.render(answered(WORDS * 100, "yes " * 5 * count))
        assert rendered.tokens > 360
        assert rendered.start is not None
        sizes.append(rendered.start)
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > 320 and sizes[-1] >= 160


@pytest.mark.parametrize("kind", ["decoder", "encoder"])
def test_a_group_is_shown_the_same_task(kind: str) -> None:
    made = renderer(400) if kind == "decoder" else chunk_renderer(400)
    answers = ["yes", "yes " * 60, "yes " * 200, "no"]
    items = [
        ScoreInput(content=answered(WORDS * 18, answer), group="g" if place < 3 else None)
        for place, answer in enumerate(answers)
    ]
    rendered = {"m": [made.render(item.content) for item in items]}
    before = [made.render(item.content) for item in items]
    cut_groups_alike(items, rendered, {"m": _Renders(made)})
    tasks = [_task(each) for each in rendered["m"]]
    assert tasks[0] == tasks[1] == tasks[2]
    assert all(each.truncated and each.tokens <= 400 for each in rendered["m"][:3])
    assert rendered["m"][3] == before[3]
    assert len({_task(each) for each in before[:3]}) > 1


def test_a_group_that_fits_is_left_alone() -> None:
    made = renderer(400)
    items = [ScoreInput(content=answered("Hello.", answer), group="g") for answer in ("yes", "no")]
    rendered = {"m": [made.render(item.content) for item in items]}
    before = list(rendered["m"])
    cut_groups_alike(items, rendered, {"m": _Renders(made)})
    assert rendered["m"] == before


def test_answers_with_equal_task_tokens_were_shown_the_same_task() -> None:
    """Also in separate requests: what `task_tokens` of a result tells the caller."""
    made = renderer(400)
    by_room: dict[int | None, set[tuple]] = {}
    for length in range(0, 240, 12):
        rendered = made.render(answered(WORDS * 18, "yes " * (length + 1)))
        by_room.setdefault(rendered.task_room, set()).add(_task(rendered))
    assert len(by_room) > 1
    assert all(len(tasks) == 1 for tasks in by_room.values())
    assert made.render(answered("Hello.", "yes")).task_room is None


class _Renders:
    def __init__(self, made) -> None:
        self.made = made

    def render(self, content, *, session=None, task_tokens=None):
        return self.made.render(content, task_tokens=task_tokens)


def _task(rendered) -> tuple:
    """What precedes the agent's first step."""
    if hasattr(rendered, "ids"):
        return rendered.ids[: rendered.start + 1]
    return tuple(chunk.ids for chunk in rendered.chunks[: rendered.start])


@pytest.mark.parametrize("name", [None, "qwen2_5", "gemma3", "llama3"])
def test_text_without_the_templates_last_newline_is_read_at_the_same_place(name: str | None) -> None:
    made = renderer(name=name)
    conversation = made.render(answered("hello", "yes"))
    whole = made.tokenizer.decode(conversation.ids)
    for text in (whole, whole.rstrip()):
        rendered = made.render(Text(text))
        assert rendered.ids == conversation.ids
    assert made.render(Text("yes")).ids != made.render(Text("yes\n")).ids


def test_how_arguments_are_spaced_says_nothing_to_a_decoder_without_tools() -> None:
    made, shown = renderer(), []
    for arguments in ('{"a":1}', '{"a": 1}', {"a": 1}, '{ "a" : 1 }'):
        call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": arguments}}
        messages = [
            {"role": "user", "content": "hello"},
            {"role": "assistant", "content": "", "tool_calls": [call]},
        ]
        content = parse_item({"messages": messages}).content
        shown.append(made.render(content).ids)
    assert len(set(shown)) == 1
