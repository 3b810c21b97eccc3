"""Where points lie."""

import numpy as np
import pytest

from workers.induce.embedding import Embedder
from workers.induce.point_space import PointSpace

pytestmark = pytest.mark.ml
POINTS = (
    "It never looked the order up.",
    "It did not check the order.",
    "Rude to the customer.",
    "The tone is insulting.",
    "The code does not compile.",
    "The loop begins at one.",
)


@pytest.fixture(scope="module")
def space() -> PointSpace:
    return PointSpace(POINTS, Embedder(), Embedder(is_middle=True))


def test_meaning_and_wording_are_near(space: PointSpace) -> None:
    cosines = space(POINTS) @ space(POINTS).T
    assert np.diag(cosines) == pytest.approx(1.0)
    assert cosines[0].argsort()[-2] == 1
    assert cosines[2].argsort()[-2] == 3
    near = space(["The loop starts at one."])[0] @ space(POINTS).T
    assert near.argmax() == 5


def test_what_all_points_share_does_not_count() -> None:
    """Equal beginnings raise no cosine of embeddings, whose mean is taken off."""
    points = [f"In this trajectory of the retail agent, {point.lower()}" for point in POINTS]
    cosines = PointSpace(points, Embedder(), Embedder(is_middle=True))(points)
    embedded = cosines[:, :768] @ cosines[:, :768].T
    assert embedded[~np.eye(len(points), dtype=bool)].mean() < 0.0


def test_no_texts(space: PointSpace) -> None:
    assert space([]).shape == (0, 0)
