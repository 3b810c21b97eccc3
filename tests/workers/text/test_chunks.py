from array import array
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from workers.errors import RewardError
from workers.models.backbones.encoder import chunk_renderer
from workers.schema import (
    Features,
    ObservationResult,
    Part,
    Step,
    Task,
    Text,
    TokenIds,
    ToolCall,
    Trajectory,
)
from workers.text import SOURCES, chunks, template_fingerprint
from workers.text.segments import segments

SHORT = st.text(alphabet="abc good.,", max_size=60)


@st.composite
def steps(draw):
    source = draw(st.sampled_from(["system", "user", "agent", "environment"]))
    seen = (ObservationResult(content=(Part(text=draw(SHORT)),)),)
    if source != "agent":
        return Step(
            source=source, message=(Part(text=draw(SHORT)),), observation=draw(st.sampled_from([(), seen]))
        )
    call = (ToolCall(name="look", arguments={"at": draw(SHORT)}),)
    return Step(
        source="agent",
        message=(Part(text=draw(SHORT)),),
        reasoning=draw(st.none() | SHORT),
        tool_calls=draw(st.sampled_from([(), call])),
        observation=draw(st.sampled_from([(), seen])),
    )


@pytest.fixture(scope="module")
def renderer(tiny_encoder):
    return chunk_renderer(tiny_encoder, chunk_tokens=16, max_tokens=100_000)


def made(*parts):
    return Trajectory(steps=tuple(parts), task=Task(id="t"))


def said(source, text):
    return Step(source=source, message=(Part(text=text),))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(steps(), min_size=1, max_size=8), st.data())
def test_what_a_step_renders_to_never_changes_when_more_come(renderer, parts, data):
    parts = [said("agent", "good"), *parts]
    cut = data.draw(st.integers(1, len(parts)))
    whole, part = renderer.render(made(*parts)), renderer.render(made(*parts[:cut]))
    assert whole.chunks[: len(part.chunks)] == part.chunks
    assert whole.grounding[: len(part.chunks)] == part.grounding
    assert whole.reads[: len(part.reads)] == part.reads
    assert whole.start == part.start == 0


def test_each_agent_step_is_read_at_its_last_chunk(renderer):
    call = Step(
        source="agent",
        tool_calls=(ToolCall(name="look", arguments={}),),
        observation=(ObservationResult(content=(Part(text="the order was sent"),)),),
    )
    rendered_chunks = renderer.render(
        made(said("user", "hello"), call, said("agent", "good"), said("user", "no"))
    )
    assert [(SOURCES[chunk.source], chunk.step, chunk.agent_step) for chunk in rendered_chunks.chunks] == [
        ("user", 0, None),
        ("agent", 1, 0),
        ("environment", 1, 0),
        ("agent", 2, 1),
    ]
    assert rendered_chunks.reads == (2, 3)
    assert rendered_chunks.start == 1


def test_text_is_a_trajectory_of_one_agent_step_and_its_token_ids_are_the_same(renderer):
    text = "the order was sent, good. " * 5
    rendered = renderer.render(Text(text))
    ids = tuple(renderer.token_ids(text))
    framed = renderer.framed(ids)
    for other in (made(said("agent", text)), TokenIds(ids), TokenIds(framed)):
        assert renderer.render(other).key == rendered.key
    assert len(rendered.chunks) > 1
    assert sum((chunk.ids for chunk in rendered.chunks), ()) == ids
    assert (
        max(len(chunk.ids) for chunk in rendered.chunks) - min(len(chunk.ids) for chunk in rendered.chunks)
        <= 1
    )


def test_nothing_but_the_steps_is_read(renderer):
    parts = (said("user", "hello"), said("agent", "good"))
    plain = renderer.render(made(*parts))
    marked = Trajectory(
        steps=tuple(Step(source=s.source, message=s.message, reward=1.0, extra={"x": "bad"}) for s in parts),
        task=Task(id="z", instruction="bad", reference="bad", metadata={"bad": 1}),
        agent="bad",
        reward=1.0,
        success=True,
        metadata={"success": True},
    )
    assert renderer.render(marked).key == plain.key


def test_too_long_keeps_the_task_and_the_latest_steps(tiny_encoder):
    short = chunk_renderer(tiny_encoder, chunk_tokens=16, max_tokens=60)
    rendered_chunks = short.render(
        made(said("user", "the order"), *(said("agent", f"good {'yes ' * 9}") for _ in range(10)))
    )
    shown = [(SOURCES[chunk.source], chunk.agent_step) for chunk in rendered_chunks.chunks]
    assert shown == [("user", None), ("gap", None), ("agent", 6), ("agent", 7), ("agent", 8), ("agent", 9)]
    assert rendered_chunks.truncated and rendered_chunks.tokens <= 60
    assert rendered_chunks.reads == (None,) * 6 + (2, 3, 4, 5)
    assert rendered_chunks.start == 1  # the baseline is read at the task, not at the gap


@pytest.mark.parametrize("limit", [20, 24, 33, 40, 64, 100])
def test_the_limit_holds_whatever_is_long(tiny_encoder, limit):
    short = chunk_renderer(tiny_encoder, chunk_tokens=8, max_tokens=limit)
    long = "yes " * 300
    for parts in ([said("user", long), said("agent", "no")], [said("user", "no"), said("agent", long)]):
        rendered_chunks = short.render(made(*parts, said("user", long)))
        assert rendered_chunks.truncated
        assert rendered_chunks.tokens <= limit
        assert rendered_chunks.reads[-1] == len(rendered_chunks.chunks) - 1


def test_tool_calls_and_images_are_shown_as_text():
    step = Step(
        source="agent",
        message=(Part(text="Look"), Part(type="image", source="sha256:1")),
        tool_calls=(ToolCall(name="f", arguments={"a": 1}), ToolCall(name="g", arguments="x", raw="x ")),
    )
    assert [segment.text for segment in segments(step)] == ['Look\n[image]\nf({"a": 1})\ng(x )']


def test_what_cannot_be_read_is_refused(renderer):
    with pytest.raises(RewardError, match="no agent step"):
        renderer.render(made(said("user", "hello")))
    with pytest.raises(RewardError, match="outside this model's vocabulary") as caught:
        renderer.render(TokenIds((5, 10**9)))
    assert caught.value.pointer == "/input_ids/1"
    with pytest.raises(RewardError, match="reads text"):
        renderer.render(Features(((1.0,),)))


def test_the_fingerprint_changes_with_tokenizer_and_limits(tiny_encoder, tmp_path):
    def fingerprint(folder, chunk_tokens=16):
        return template_fingerprint(chunk_renderer(folder, chunk_tokens=chunk_tokens, max_tokens=256))

    assert fingerprint(tiny_encoder) == fingerprint(tiny_encoder)
    assert fingerprint(tiny_encoder) != fingerprint(tiny_encoder, 15)
    for name in ("config.json", "tokenizer.json"):
        (tmp_path / name).write_text(
            (tiny_encoder / name).read_text().replace('"lowercase":true', '"lowercase":false')
        )
    (tmp_path / "tokenizer.json").write_text(
        (tiny_encoder / "tokenizer.json").read_text().replace('"lowercase": true', '"lowercase": false')
    )
    assert fingerprint(tiny_encoder) != fingerprint(tmp_path)


def test_texts_seen_before_are_not_tokenised_again_and_old_ones_are_let_go(monkeypatch, renderer) -> None:
    monkeypatch.setattr(chunks, "_KNOWN_BYTES", 1000)  # three short texts
    ours = replace(renderer)
    first = ours.token_ids("one two three")
    (key,) = ours._known._by_hash
    assert ours.token_ids("one two three") == first and list(ours._known._by_hash) == [key]
    assert list(first) == renderer.tokenizer.encode("one two three", add_special_tokens=False).ids
    ours._known._by_hash[key] = array("i", [7])
    assert ours.token_ids("one two three") == (7,)  # it is not tokenised again
    for number in range(4):
        ours.token_ids(f"four five {number}")
    assert key not in ours._known._by_hash and ours._known._bytes <= 1000
    assert ours.token_ids("one two three") == first
