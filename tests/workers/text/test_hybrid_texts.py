"""What the hybrid backbone reads next to the linear one: the agent's text of each step in chunks."""

import pytest

from tests.workers.conftest import said
from workers.models.backbones.encoder import chunk_renderer
from workers.schema import Task, Text, Trajectory
from workers.text import HybridRenderer, StepTextRenderer
from workers.text.hybrid_texts import END_CHUNKS

pytestmark = pytest.mark.ml


@pytest.fixture
def renderer(tiny_encoder) -> HybridRenderer:
    return HybridRenderer(chunk_renderer(tiny_encoder, chunk_tokens=16, max_tokens=16))


def words(renderer: HybridRenderer, chunk: tuple[int, ...]) -> str:
    assert (chunk[:1], chunk[-1:]) == (renderer.tokens.before, renderer.tokens.after)
    return renderer.tokens.tokenizer.decode(list(chunk[1:-1]))


def test_chunks_are_of_the_agents_own_text(renderer) -> None:
    steps = (said("user", "hello"), said("agent", "the order was sent"), said("agent", ""))
    run = Trajectory(steps=steps, task=Task(id="t"))
    rendered, plain = renderer.render(run), StepTextRenderer().render(run)
    assert [[words(renderer, chunk) for chunk in step] for step in rendered.chunks] == [
        ["the order was sent"],
        [],
    ]
    assert rendered.agent_texts == plain.agent_texts
    assert (rendered.observations, rendered.key) == (plain.observations, plain.key)
    assert rendered.structure.tolist() == plain.structure.tolist()


def test_of_a_long_step_both_ends_are_read(renderer) -> None:
    text = " ".join(["good"] * 200 + ["lost"] * 600 + ["fine"] * 200)
    (step,) = renderer.render(Text(text)).chunks
    assert len(step) == 2 * END_CHUNKS
    assert all(len(chunk) <= 18 for chunk in step)
    found = [set(words(renderer, chunk).split()) for chunk in step]
    assert found == [{"good"}] * END_CHUNKS + [{"fine"}] * END_CHUNKS
    assert renderer.render(Text(text)).truncated is False
    (short,) = renderer.render(Text("good " * 16 * 2 * END_CHUNKS)).chunks
    assert len(short) == 2 * END_CHUNKS


def test_the_length_of_chunks_is_part_of_its_settings(renderer, tiny_encoder) -> None:
    longer = HybridRenderer(chunk_renderer(tiny_encoder, chunk_tokens=20, max_tokens=20))
    assert longer.settings() != renderer.settings()
    assert renderer.model_input(renderer.render(Text("good")))[-1] == [
        [[*renderer.tokens.framed(renderer.tokens.token_ids("good"))]]
    ]
