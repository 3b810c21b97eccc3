"""The batcher: order, budgets, duplicates, overload, and one bad item that fails alone."""

import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError
from typing import Any

import pytest

from tests.rewards.conftest import wait_until
from tests.workers.engine.fakes import FakeModel, FakeRendered
from workers.engine import Batcher, Overloaded, ServedModel
from workers.errors import RewardError
from workers.schema import Text


@pytest.fixture
def gate() -> threading.Event:
    return threading.Event()


@pytest.fixture
def served(gate: threading.Event) -> ServedModel:
    return ServedModel("p/m@1", FakeModel(gate=gate))


@pytest.fixture
def batcher(gate: threading.Event) -> Iterator[Batcher]:
    batcher = Batcher(batch_tokens=10, queue_tokens=30, wait_seconds=0.0)
    yield batcher
    gate.set()
    batcher.close()


def render(served: ServedModel, *texts: str) -> list:
    return [served.model.render(Text(text)) for text in texts]


def block(batcher: Batcher, served: ServedModel) -> Any:
    """An item that the model thread has taken, and cannot finish before the gate opens."""
    blocker = batcher.submit(served, render(served, "x"))
    wait_until(lambda: batcher.queued == 0)
    return blocker


def raws(future) -> list[float]:
    return [score.raw for score in future.result(timeout=10)]


def test_scores_come_in_order_and_batches_keep_to_the_budget(batcher, served, gate) -> None:
    first = batcher.submit(served, render(served, "a", "bb", "ccc"))
    second = batcher.submit(served, render(served, "dddd", "eeeee", "ffffff", "g"))
    gate.set()
    assert raws(first) == pytest.approx([0.25 + n * ord(c) / 1000 for n, c in [(1, "a"), (2, "b"), (3, "c")]])
    assert raws(second) == pytest.approx(
        [0.25 + n * ord(c) / 1000 for n, c in [(4, "d"), (5, "e"), (6, "f"), (1, "g")]]
    )
    # At most 10 tokens a batch: however the first was cut, everything after it is 1+2+3+4 | 5 | 6+1 or the like.
    assert sum(served.model.batches) == 7
    assert len(served.model.batches) >= 3


def test_an_empty_request_has_an_empty_answer(batcher, served) -> None:
    assert batcher.submit(served, []).result(timeout=10) == []


def test_an_item_larger_than_the_budget_goes_alone(batcher, served, gate) -> None:
    gate.set()
    assert len(raws(batcher.submit(served, render(served, "x" * 25, "y")))) == 2


def test_equal_items_are_computed_once_and_remembered(batcher, served, gate) -> None:
    future = batcher.submit(served, render(served, "a", "a", "b"))
    other = batcher.submit(served, render(served, "b"))
    gate.set()
    a, again, b = future.result(timeout=10)
    assert (a.raw, a.raw, b.raw) == (again.raw, a.raw, other.result(timeout=10)[0].raw)
    assert sum(served.model.batches) == 2
    remembered = batcher.submit(served, render(served, "a")).result(timeout=10)[0]
    assert (remembered.raw, remembered.cached_tokens) == (a.raw, 1)
    assert sum(served.model.batches) == 2


def test_what_is_remembered_belongs_to_one_model(batcher, served, gate) -> None:
    gate.set()
    other = ServedModel("p/m@2", FakeModel(factor=2.0))
    one = raws(batcher.submit(served, render(served, "a")))
    two = raws(batcher.submit(other, render(other, "a")))
    assert (two[0] - 0.25) == pytest.approx(2 * (one[0] - 0.25))
    batcher.evict(served)
    batcher.submit(served, render(served, "a")).result(timeout=10)
    assert sum(served.model.batches) == 2


@pytest.mark.parametrize("bad", ["broken", "nan"])
def test_one_bad_item_fails_its_request_and_no_other(batcher, served, gate, bad) -> None:
    batcher.batch_tokens = 100
    failing = batcher.submit(served, render(served, "a", bad))
    good = batcher.submit(served, render(served, "b", "c"))
    gate.set()
    with pytest.raises(RewardError) as caught:
        failing.result(timeout=10)
    assert caught.value.pointer == "/1"
    assert len(raws(good)) == 2


def test_overload_is_refused_at_once_and_whole(batcher, served, gate) -> None:
    waiting = batcher.submit(served, render(served, "a" * 8, "b" * 8, "c" * 8))
    with pytest.raises(Overloaded) as caught:
        batcher.submit(served, render(served, "d" * 20, "e" * 20))
    assert caught.value.retry_after >= 1
    assert "the limit is 30" in caught.value.message
    gate.set()
    assert len(raws(waiting)) == 3
    assert batcher.queued == 0


def test_a_request_above_the_limit_gets_its_turn_when_nothing_waits(batcher, served, gate) -> None:
    gate.set()
    assert len(raws(batcher.submit(served, render(served, "a" * 50)))) == 1


def test_a_cancelled_request_is_not_computed(batcher, served, gate) -> None:
    running = batcher.submit(served, render(served, "a" * 10))
    given_up = batcher.submit(served, render(served, "b"))
    given_up.cancel()
    last = batcher.submit(served, render(served, "c"))
    gate.set()
    assert len(raws(running)) == len(raws(last)) == 1
    assert sum(served.model.batches) == 2
    with pytest.raises(CancelledError):
        given_up.result(timeout=10)


def test_duplicates_keep_to_their_bound(served, gate) -> None:
    gate.set()
    batcher = Batcher(duplicate_bytes=5 * 732)
    texts = [chr(97 + n) for n in range(10)]
    batcher.submit(served, render(served, *texts)).result(timeout=10)
    assert len(batcher.duplicates) == 5
    assert batcher.duplicates.nbytes <= 5 * 732
    batcher.close()
    with pytest.raises(RuntimeError, match="closed"):
        batcher.submit(served, render(served, "a"))


def test_those_that_begin_alike_are_computed_together(served, gate) -> None:
    """Two groups that arrive mixed: the budget of 20 tokens holds one of them whole, what it shares counted once."""
    batcher = Batcher(batch_tokens=20)
    blocker = block(batcher, served)

    def member(group: str, number: int) -> FakeRendered:
        return FakeRendered(((ord(group),) * 10, (number,) * 3), family=group.encode())

    mixed = [member(group, number) for number in (1, 2, 3) for group in "ab"]
    futures = [batcher.submit(served, [entry]) for entry in mixed]
    gate.set()
    for future in (blocker, *futures):
        future.result(timeout=10)
    assert served.model.batches == [1, 3, 3]
    batcher.close()


def test_a_family_that_keeps_coming_starves_nobody(served, gate) -> None:
    batcher = Batcher(batch_tokens=4)
    blocker = block(batcher, served)
    family = [FakeRendered(((number,) * 3,), family=b"f") for number in range(3)]
    first, other, *rest = [
        batcher.submit(served, [entry]) for entry in (family[0], *render(served, "abc"), *family[1:])
    ]
    gate.set()
    done: list[str] = []
    for name, future in (("first", first), ("other", other), ("last", rest[-1])):
        future.add_done_callback(lambda _, name=name: done.append(name))
    for future in (blocker, first, other, *rest):
        future.result(timeout=10)
    assert done == ["first", "other", "last"]
    batcher.close()


def test_one_that_floods_the_queue_starves_nobody(served, gate) -> None:
    """Who came later waited for everything that was there before them."""
    batcher = Batcher(batch_tokens=2, queue_tokens=1000, wait_seconds=0.0)
    done: list[str] = []
    try:
        block(batcher, served)
        flood = [batcher.submit(served, render(served, f"a{n:02d}"), (), ("a", "key")) for n in range(100)]
        small = [batcher.submit(served, render(served, f"b{n:02d}"), (), ("b", "key")) for n in range(5)]
        for name, futures in (("a", flood), ("b", small)):
            for future in futures:
                future.add_done_callback(lambda _, name=name: done.append(name))
        gate.set()
        for future in (*flood, *small):
            future.result(timeout=10)
    finally:
        gate.set()
        batcher.close()
    assert "".join(done[:10]).count("b") == 5  # by turns, however many of the other wait
    assert done.count("a") == 100


def test_one_that_fills_the_queue_leaves_room_for_others(batcher, served, gate) -> None:
    block(batcher, served)
    batcher.submit(served, render(served, "a" * 15, "A" * 15), (), ("a", "key"))
    with pytest.raises(Overloaded, match="30 of them yours"):
        batcher.submit(served, render(served, "y"), (), ("a", "key"))
    batcher.submit(served, render(served, "b" * 14), (), ("b", "key"))
    with pytest.raises(Overloaded, match="14 of them yours"):
        batcher.submit(served, render(served, "B" * 14), (), ("b", "key"))
    batcher.submit(served, render(served, "c" * 7), (), ("c", "key"))


def test_equal_items_of_two_callers_do_not_wait_in_one_place(served, gate) -> None:
    batcher = Batcher(batch_tokens=2, queue_tokens=1000, wait_seconds=0.0)
    try:
        block(batcher, served)
        flood = [batcher.submit(served, render(served, f"a{n:02d}"), (), ("a", "key")) for n in range(50)]
        same = batcher.submit(served, render(served, "a49"), (), ("b", "key"))
        order: list[str] = []
        same.add_done_callback(lambda _: order.append("b"))
        flood[5].add_done_callback(lambda _: order.append("a"))
        gate.set()
        assert raws(same) == raws(flood[49])
        assert order[0] == "b"
    finally:
        gate.set()
        batcher.close()


def test_a_later_model_never_gets_the_scores_of_one_that_is_gone(batcher, gate) -> None:
    """Python gives the address of a collected object to a later one: an `id()` is no key of a cache."""
    gate.set()
    for factor in range(1, 30):
        served = ServedModel("p/m@1", FakeModel(factor=float(factor)))
        assert raws(batcher.submit(served, render(served, "a"))) == pytest.approx([0.25 + factor * 0.097])
