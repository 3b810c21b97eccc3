"""Reference answers, goals, principles and personas of a request: read, or named in the flags."""

import pytest

from tests.workers.engine.fakes import FakeModel
from tests.workers.engine.test_versions import MODEL, TURNS, batcher, compose, score_items
from workers.errors import RewardError
from workers.schema import Trajectory, item_json, parse_item

__all__ = ["batcher"]
GIVEN = {"reference": "42", "goal": "find it", "principle": "short", "persona": "ann"}


def flags(version, item: dict) -> set[str]:
    (found,) = score_items(version, item)
    return set(found.flags)


def test_what_no_model_reads_is_flagged(batcher) -> None:
    assert flags(compose(batcher, MODEL), TURNS | GIVEN) == {f"unread:{name}" for name in GIVEN}
    assert flags(compose(batcher, MODEL), TURNS | {"goal": "", "principle": None}) == set()


def test_a_model_reads_its_own_conditions_and_says_which_are_missing(batcher) -> None:
    model = FakeModel(conditioned=("reference", "goal"))
    version = compose(batcher, MODEL, models={"p/m@1": model})
    assert flags(version, TURNS | GIVEN) == {"unread:principle", "unread:persona"}
    assert model.seen[-1].conditions == {"reference": "42", "goal": "find it"}
    assert flags(version, TURNS | {"goal": "find it"}) == {"missing:reference"}


def test_a_request_goes_before_what_is_stored(batcher) -> None:
    model = FakeModel(conditioned=("goal",))
    version = compose(batcher, MODEL, models={"p/m@1": model})
    item = parse_item(TURNS | {"goal": "asked for"})
    assert isinstance(item.content, Trajectory)
    item.content.metadata["goal"] = "stored"
    version.render([item])
    assert model.seen[-1].conditions == {"goal": "asked for"}
    version.render([parse_item(TURNS).with_content(item.content)])
    assert model.seen[-1].conditions == {"goal": "stored"}


def test_content_without_a_conversation_has_no_place_for_conditions(batcher) -> None:
    model = FakeModel(conditioned=("goal",))
    version = compose(batcher, MODEL, models={"p/m@1": model})
    assert flags(version, {"text": "aa", "goal": "find it"}) == {"unread:goal", "missing:goal"}


def test_items_with_conditions_are_written_as_they_are_read() -> None:
    item = parse_item(TURNS | GIVEN)
    assert (
        parse_item(item_json(item)).conditions
        == item.conditions
        == {n: GIVEN[n] for n in GIVEN if n != "reference"}
    )


@pytest.mark.parametrize("value", [3, ["find"], {"a": 1}])
def test_a_goal_that_is_no_text_is_refused(value) -> None:
    with pytest.raises(RewardError) as caught:
        parse_item(TURNS | {"goal": value})
    assert caught.value.pointer == "/goal"
    assert "in words" in caught.value.message
