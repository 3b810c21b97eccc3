"""What of a space is a number, a text, a picture or a row of a set."""

import numpy as np
import pytest
from gymnasium import Env, Space, spaces
from touchstone_client.gym import RewardWrapper, packed
from touchstone_client.spaces import SpaceReader

from apps.trajectories import formats
from workers.errors import InvalidRecord

SPACES: list[Space[object]] = [
    spaces.Dict(at=spaces.Box(-1, 1, (2, 2)), door=spaces.Discrete(3, start=-1), told=spaces.Text(5)),
    spaces.Tuple([spaces.MultiDiscrete([2, 3]), spaces.MultiBinary(3)]),
    spaces.Sequence(spaces.Box(0, 1, (2,))),
    spaces.Sequence(spaces.Box(0, 1, (2,)), stack=True),
    spaces.Sequence(spaces.Dict(x=spaces.Discrete(2), inner=spaces.Sequence(spaces.Discrete(3)))),
    spaces.Graph(spaces.Box(0, 1, (2,)), spaces.Discrete(3)),
    spaces.Graph(spaces.Discrete(2), None),
    spaces.OneOf(
        [spaces.Discrete(2), spaces.Box(0, 1, (2,)), spaces.Text(4), spaces.Sequence(spaces.Discrete(2))]
    ),
    spaces.Box(0, 255, (20, 24, 3), np.uint8),
    spaces.Box(0, 255, (4, 84, 84), np.uint8),
    spaces.Box(0, 255, (7, 7, 3), np.uint8),
    spaces.Box(0, 1, (), float),
]


@pytest.mark.parametrize("space", SPACES, ids=lambda space: type(space).__name__)
def test_every_value_has_the_named_numbers(space: Space[object]) -> None:
    space.seed(0)
    reader = SpaceReader(space, "seen")
    for _ in range(20):
        value = reader.read(space.sample())
        assert len(value.numbers) == len(reader.names) == len(set(reader.names))
        assert value.sets.keys() == reader.sets.keys()
        for name, rows in value.sets.items():
            assert {len(row) for row in rows} <= {len(reader.sets[name])}


@pytest.mark.parametrize("space", [*SPACES[1:2], *SPACES[-2:]], ids=lambda space: type(space).__name__)
def test_numbers_are_those_of_gymnasium(space: Space[object]) -> None:
    """Models trained on what was recorded earlier read what is recorded now."""
    value = space.sample()
    assert SpaceReader(space).read(value).numbers == np.ravel(spaces.flatten(space, value)).tolist()


def test_parts_are_named() -> None:
    reader = SpaceReader(SPACES[0], "seen")
    assert reader.names == (
        *(f"seen.at[{row},{column}]" for row in (0, 1) for column in (0, 1)),
        "seen.door=-1",
        "seen.door=0",
        "seen.door=1",
    )
    value = reader.read({"at": np.zeros((2, 2)), "door": 1, "told": "go"})
    assert (value.numbers[4:], value.texts) == ([0, 0, 1], {"seen.told": "go"})


def test_elements_and_edges_are_rows() -> None:
    graph = spaces.GraphInstance(
        nodes=np.array([[0.5, 1], [0, 0]]), edges=np.array([2]), edge_links=np.array([[0, 1]])
    )
    value = SpaceReader(SPACES[5], "seen").read(graph)
    assert value.sets == {"seen.nodes": [[0.5, 1], [0, 0]], "seen.edges": [[0, 1, 0, 0, 1]]}
    assert packed(value) == [2, 0.5, 1, 0, 0, 1, 0, 1, 0, 0, 1]
    nested = SpaceReader(SPACES[4], "seen").read(({"x": 1, "inner": (2, 0)}, {"x": 0, "inner": ()}))
    assert nested.sets == {"seen": [[0, 1], [1, 0]], "seen[].inner": [[0, 0, 0, 1], [0, 1, 0, 0]]}


@pytest.mark.parametrize(
    ("shape", "sizes"),
    [((20, 24, 3), [(20, 24, 3)]), ((20, 24), [(20, 24)]), ((4, 84, 84), [(84, 84)] * 4), ((3, 20, 24), [(20, 24, 3)]),
     ((2, 20, 24, 1), [(20, 24)] * 2), ((7, 7, 3), [])],
)  # fmt: skip
def test_arrays_of_bytes_are_pictures(shape: tuple[int, ...], sizes: list[tuple[int, ...]]) -> None:
    space = spaces.Box(0, 255, shape, np.uint8)
    value = SpaceReader(space).read(space.sample())
    assert [picture.shape for picture in value.pictures.values()] == sizes
    assert len(value.numbers) == (0 if sizes else np.prod(shape))


def test_a_value_outside_of_its_space_is_refused() -> None:
    with pytest.raises(ValueError, match="value 3 is not one of the 3"):
        SpaceReader(spaces.Discrete(3)).read(3)


class Told(Env[object, object]):
    observation_space = SPACES[0]
    action_space = spaces.Discrete(2)  # type: ignore[assignment]


def test_a_reward_needs_numbers_alone() -> None:
    with pytest.raises(ValueError, match="observations of this environment hold text or pictures"):
        RewardWrapper(Told(), None)  # type: ignore[arg-type]


def test_observations_alone_are_an_episode() -> None:
    gymnasium = formats.FORMATS["gymnasium"]
    document = {"observations": [[0.5], [1.0], [2.0]], "rewards": [1.0, 2.0], "env_id": "walk"}
    assert formats.detect(document).name == "gymnasium"
    read = gymnasium.read(document)
    assert [step.features for step in read.steps] == [(0.5,), (1.0,), (2.0,)]
    assert ([step.reward for step in read.steps], read.reward) == ([1.0, 2.0, None], 3.0)


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"turns": [["anna"], ["carl"]]}, "/turns/1/0"),
        ({"turns": [["anna"], ["anna"]]}, "/turns/1/0"),
        ({"turns": []}, "/turns"),
        (
            {"parts": {"anna": {"observations": [[1]], "actions": [[1], [2], [3]]}}},
            "/parts/anna/observations",
        ),
        (
            {
                "parts": {"anna": {"observations": [[1]], "actions": [[1]], "messages": []}},
                "turns": [["anna"]],
            },
            None,
        ),
    ],
)
def test_what_is_no_episode_of_a_team(change: dict[str, object], pointer: str | None) -> None:
    document = {"parts": {"anna": {"observations": [[1]], "actions": [[1]]}}, "turns": [["anna"]]} | change
    if pointer is None:
        assert len(formats.FORMATS["gymnasium"].read(document).steps) == 1
        return
    with pytest.raises(InvalidRecord) as caught:
        formats.FORMATS["gymnasium"].read(document)
    assert caught.value.pointer == pointer
