"""What is out of distribution: about one in two hundred of what a model was trained on, and what is unlike it."""

import pytest
import torch

from workers.models.ood import FEWEST, OodDetector, load_ood_detector


def states(count: int, *, seed: int = 0, width: int = 48, rank: int = 6) -> torch.Tensor:
    """In a few directions, with a little of all others: as trunks make them."""
    dice = torch.Generator().manual_seed(seed)
    axes = torch.randn(rank, width, generator=torch.Generator().manual_seed(99))
    return (
        3 + torch.randn(count, rank, generator=dice) @ axes + 0.1 * torch.randn(count, width, generator=dice)
    )


@pytest.mark.parametrize("count", [60, 400, 3000])
def test_few_of_the_same_kind_are_strange(count: int) -> None:
    detector = OodDetector.fit(states(count))
    assert detector is not None
    scores = detector.ood_scores(states(4000, seed=5))
    share = sum(score > 1 for score in scores) / 4000
    assert share < 0.03
    assert count < 1000 or share == pytest.approx(0.005, abs=0.004)


def test_what_leaves_the_directions_is_strange() -> None:
    detector = OodDetector.fit(states(400))
    assert detector is not None
    dice = torch.Generator().manual_seed(7)
    off = states(100, seed=8) + torch.randn(100, 48, generator=dice)
    assert min(detector.ood_scores(off)) > 1
    far = states(100, seed=8) * 4
    assert min(detector.ood_scores(far)) > 1


def test_a_direction_that_never_varied_is_not_infinitely_telling() -> None:
    flat = states(200)
    flat[:, 7] = 0.0
    detector = OodDetector.fit(flat)
    assert detector is not None
    assert all(torch.isfinite(torch.tensor(detector.ood_scores(states(10, seed=2)))))


def test_of_few_nothing_is_said() -> None:
    assert OodDetector.fit(states(FEWEST - 1)) is None
    assert OodDetector.fit(torch.empty(0, 4)) is None


def test_saved_and_loaded(tmp_path) -> None:
    detector = OodDetector.fit(states(100))
    assert detector is not None
    detector.save(tmp_path)
    loaded = load_ood_detector(tmp_path)
    assert loaded is not None
    some = states(9, seed=4)
    assert loaded.ood_scores(some) == detector.ood_scores(some)
    assert load_ood_detector(tmp_path / "nothing") is None


def test_other_tasks_widen_the_limit() -> None:
    """Whatever was judged, most of what is done in a task that was not is no surprise."""
    narrow = OodDetector.fit(states(400))
    wide = OodDetector.fit(states(400), others=1.5 * states(100, seed=3) - 1.5)
    assert narrow is not None and wide is not None
    assert wide.limit > narrow.limit
    same = OodDetector.fit(states(400), others=states(5, seed=3) * 9)  # too few to go by
    assert same is not None and same.limit == narrow.limit
