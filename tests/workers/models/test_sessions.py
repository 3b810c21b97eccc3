"""A trajectory that grows is computed from where it was left, and scores what it scores again."""

import random
from collections.abc import Iterator

import pytest
import torch

from tests.workers.decoders import configs, tokenizer
from workers.models.backbones.base import Placement
from workers.models.backbones.decoder import Decoder, empty_base
from workers.models.cache.kv_cache import growing_mask
from workers.models.cache.session_cache import Past, SessionCache, SessionSpace
from workers.packing import Cost, additive_mask, build_forest, stack
from workers.text import ConversationRenderer, Session, Tokens

REWRITES = (
    "{% for message in messages %}{{ message.role }}: "
    "{% if message.role == 'assistant' and not loop.last %}...{% else %}{{ message.content }}{% endif %}\n{% endfor %}"
)


def decoder(name: str = "qwen2", template: str | None = None) -> Decoder:
    torch.manual_seed(0)
    base = empty_base(configs()[name], Placement()).eval()
    made = tokenizer(template) if template else tokenizer()
    return Decoder(base, ConversationRenderer(made, 400))


def item(ids: tuple[int, ...], *reads: int, name: str = "s", space: str = "key") -> Tokens:
    return Tokens(ids, reads, 4, False, Session(space, name))


def from_the_start(model: Decoder, one: Tokens) -> torch.Tensor:
    return model.states([Tokens(one.ids, one.reads, one.start, False)]).flat


@pytest.fixture(autouse=True)
def no_gradients() -> Iterator[None]:
    with torch.no_grad():
        yield


def ids_of(count: int, seed: int = 0) -> tuple[int, ...]:
    dice = random.Random(seed)
    return tuple(dice.randrange(400) for _ in range(count))


@pytest.mark.parametrize("in_one_batch", [False, True], ids=["one by one", "in one batch"])
@pytest.mark.parametrize("name", configs())
def test_a_step_more_equals_a_computation_from_the_start(
    name: str, in_one_batch: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sessions that grow, branch off, shrink, and are asked for something else at the same place."""
    model = decoder(name)
    if in_one_batch:
        monkeypatch.setattr(model, "_session_batches", lambda places: [places] if places else [])
    assert model.grows
    cache, ids = SessionCache(2**30).within(), ids_of(120)
    for end in (40, 41, 60, 90, 120, 90, 100):
        items = [
            item(ids[:end], 20, end - 1, name="long"),
            item(ids[: end - 5] + ids[5:10], 20, end - 1, name="other"),
            item(ids[: end - 9], 7, 20, end - 10, name="third"),
        ]
        states = model.states(items, cache=cache)
        expected = torch.cat([from_the_start(model, item) for item in items])
        assert float((states.flat - expected).abs().max()) < 1e-5 * float(expected.abs().max())


def test_only_new_tokens_are_computed(monkeypatch) -> None:
    model, cache, ids = decoder(), SessionCache(2**30).within(), ids_of(100)
    lengths: list[int] = []
    forward = model.base.forward
    monkeypatch.setattr(
        model.base, "forward", lambda *a, **k: (lengths.append(k["input_ids"].shape[1]), forward(*a, **k))[1]
    )
    assert model.grows
    lengths.clear()
    assert model.states([item(ids[:60], 59)], cache=cache).cached == (0,)
    assert model.states([item(ids[:90], 59, 89)], cache=cache).cached == (60,)
    assert model.states([item(ids[:90], 59, 89)], cache=cache).cached == (90,)
    assert lengths == [60, 30]
    model.states([item(ids[:90], 50, 59, 89)], cache=cache)
    assert lengths == [60, 30, 40]  # place 50 was not read before, so what follows it is computed again


def test_a_group_shares_its_prompt_within_a_key_only() -> None:
    model, cache, ids = decoder(), SessionCache(2**30).within(), ids_of(100)
    model.states([item(ids[:60], 59, name="a")], cache=cache)
    fork = ids[:50] + ids_of(20, seed=1)
    assert model.states([item(fork, 69, name="b")], cache=cache).cached == (50,)
    assert model.states([item(fork, 69, name="a", space="another key")], cache=cache).cached == (0,)
    other = SessionSpace(cache.cache, owner=99)
    assert model.states([item(fork, 69, name="a")], cache=other).cached == (0,)


def test_it_keeps_to_its_bytes_and_forgets() -> None:
    model, ids = decoder(), ids_of(64)
    free = SessionCache(2**30)
    model.states([item(ids, 63)], cache=free.within())
    one = free.bytes
    assert one > 0
    cache = SessionCache(3 * one + 1)
    space = cache.within()
    for number in range(6):
        model.states([item(ids_of(64, seed=number), 63, name=str(number))], cache=space)
        assert cache.bytes <= cache.max_bytes
    assert len(cache) == 3
    space.forget()
    assert (len(cache), cache.bytes) == (0, 0)
    # Too large to be kept: no harm.
    model.states([item(ids_of(300), 63, 299)], cache=SessionCache(1000).within())


def test_templates_that_rewrite_and_models_that_keep_no_past_are_computed_whole(monkeypatch) -> None:
    rewriting = decoder(template=REWRITES)
    assert rewriting.renderer.rewrites and not rewriting.grows
    cache = SessionCache(2**30)
    assert rewriting.states([item(ids_of(50), 49)], cache=cache.within()).cached == (0,)
    assert len(cache) == 0
    other, forward = decoder(), type(rewriting.base).forward
    forgetful = lambda self, *a, past_key_values=None, **k: forward(self, *a, **k)  # noqa: E731
    monkeypatch.setattr(type(other.base), "forward", forgetful)
    assert not other.grows
    assert other.states([item(ids_of(50), 49)], cache=cache.within()).cached == (0,)


def test_the_mask_of_one_row_is_that_of_its_tree() -> None:
    """past [3, 5], two new: what the last rows of a whole sequence's mask are, padding hidden."""
    for window in (None, 3):
        mask = growing_mask(torch.tensor([3, 5]), 2, torch.float32, window)
        assert mask.shape == (2, 1, 2, 7)
        for row, start in enumerate((3, 5)):
            whole = additive_mask(
                stack(build_forest([list(range(start + 2))], Cost())), torch.float32, window
            )
            seen = torch.cat([mask[row, 0, :, :start], mask[row, 0, :, 5:]], -1)
            assert torch.equal(seen == 0, whole[0, 0, start:] == 0)
        assert bool((mask[0, 0, :, 3:5] < 0).all())


def test_a_past_that_grows_keeps_what_it_had() -> None:
    past = Past(torch.arange(0).numpy())
    keys = torch.randn(2, 9, 4)
    for start, end in ((0, 4), (4, 5), (5, 9)):
        whole, _ = past.write(0, keys[:, start:end], keys[:, start:end])
        assert torch.equal(whole, keys[:, :end])
        past.ids = torch.arange(end).numpy()
