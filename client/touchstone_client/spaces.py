"""Values of any Gymnasium space as numbers, texts, pictures and sets: `SpaceReader(env.observation_space).read(seen)`.

Numbers are of one length for every value of a space, and stand in one order, as `gymnasium.spaces.flatten` has them:
discrete values are one-hot, the parts of a dictionary follow each other. What has no fixed length is kept apart: text
is text; arrays of bytes that are pictures are pictures; the elements of a `Sequence`, and the nodes and edges of a
`Graph`, are rows of a set. Needs `gymnasium` and numpy; for pictures `pillow`.
"""

import base64
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector.utils import iterate

_SMALLEST_PICTURE = 16  # pixels of each side; smaller arrays of bytes are grids, such as MiniGrid's
_CHANNELS = (1, 3, 4)


@dataclass(frozen=True, slots=True)
class SpaceValue:
    """numbers: as many for every value. texts, pictures, sets: by the name of the part. pictures: (height, width) or
    (height, width, 3 or 4), bytes. sets: rows of numbers, any count of them."""

    numbers: list[float] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    pictures: dict[str, np.ndarray[Any, Any]] = field(default_factory=dict)
    sets: dict[str, list[list[float]]] = field(default_factory=dict)

    @property
    def parts(self) -> dict[str, Any]:
        """What is no number, by kind; pictures as data URLs of PNG."""
        pictures = {name: picture_url(picture) for name, picture in self.pictures.items()}
        found = {"texts": self.texts, "pictures": pictures, "sets": self.sets}
        return {kind: parts for kind, parts in found.items() if parts}


class SpaceReader:
    """Reads the values of a space. root: what names begin with, such as `observation`.

    names: of the numbers, in their order: `observation.at[0]`, and `observation.door=1` of a one-hot number. sets: the
    names of each set's numbers, by the set's name.
    """

    def __init__(self, space: gymnasium.Space[Any], root: str = "") -> None:
        self.space, self.root = space, root

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(_names(self.space, self.root))

    @cached_property
    def sets(self) -> dict[str, tuple[str, ...]]:
        return dict(_sets(self.space, self.root))

    @cached_property
    def has_text_or_pictures(self) -> bool:
        return any(not (_is_plain(space) or isinstance(space, spaces.Graph)) for space in _leaves(self.space))

    def read(self, value: Any) -> SpaceValue:
        """Raises ValueError for a value that the space cannot have."""
        found = SpaceValue()
        _read(self.space, value, self.root, found)
        return found


def _read(space: gymnasium.Space[Any], value: Any, path: str, found: SpaceValue) -> None:
    """Adds the value to `found`."""
    if isinstance(space, spaces.Dict):
        for key, part in space.spaces.items():
            _read(part, value[key], _joined(path, key), found)
    elif isinstance(space, spaces.Tuple):
        for place, (part, element) in enumerate(zip(space.spaces, value, strict=True)):
            _read(part, element, _joined(path, place), found)
    elif isinstance(space, spaces.OneOf):
        chosen, element = int(value[0]), value[1]
        found.numbers.extend(_one_hot(chosen, len(space.spaces)))
        for place, part in enumerate(space.spaces):
            if place == chosen:
                _read(part, element, _joined(path, place), found)
            else:  # zeros, so that there are as many numbers whatever is chosen
                found.numbers.extend([0.0] * sum(1 for _ in _names(part, "")))
                found.sets.update({name: [] for name, _ in _sets(part, _joined(path, place))})
    elif isinstance(space, spaces.Sequence):
        _read_sequence(space, value, path, found)
    elif isinstance(space, spaces.Graph):
        _read_graph(space, value, path, found)
    elif isinstance(value, str):
        found.texts[path] = value
    elif isinstance(space, spaces.Box) and is_picture(space):
        found.pictures.update(_pictures(np.asarray(value, dtype=np.uint8), path))
    else:
        found.numbers.extend(_numbers(space, value, path))


def _read_sequence(space: spaces.Sequence, value: Any, path: str, found: SpaceValue) -> None:
    elements = list(iterate(space.stacked_feature_space, value) if space.stack else value)
    rows: dict[str, list[list[float]]] = {name: [] for name, _ in _sets(space, path)}
    for place, element in enumerate(elements):
        inner = SpaceValue()
        _read(space.feature_space, element, f"{path}[{place}]", inner)
        if inner.numbers:
            rows[path].append(inner.numbers)
        for name, inner_rows in inner.sets.items():
            # A set within a set: its rows begin with the place of the element that they belong to.
            outer = path + "[]" + name.removeprefix(f"{path}[{place}]")
            rows[outer].extend([float(place), *row] for row in inner_rows)
        found.texts.update(inner.texts)
        found.pictures.update(inner.pictures)
    found.sets.update(rows)


def _read_graph(space: spaces.Graph, value: Any, path: str, found: SpaceValue) -> None:
    nodes, edges = _joined(path, "nodes"), _joined(path, "edges")
    found.sets[nodes] = [_numbers(space.node_space, node, nodes) for node in value.nodes]
    if space.edge_space is None:
        return
    links = [] if value.edge_links is None else value.edge_links
    of_edges = [] if value.edges is None else value.edges
    found.sets[edges] = [
        [float(link[0]), float(link[1]), *_numbers(space.edge_space, edge, edges)]
        for link, edge in zip(links, of_edges, strict=True)
    ]


def _numbers(space: gymnasium.Space[Any], value: Any, path: str) -> list[float]:
    if isinstance(space, spaces.Discrete):
        return _one_hot(int(value) - int(space.start), int(space.n))
    if isinstance(space, spaces.MultiDiscrete):
        starts, counts = np.ravel(space.start), np.ravel(space.nvec)
        return [
            number
            for element, start, count in zip(np.ravel(value), starts, counts, strict=True)
            for number in _one_hot(int(element) - int(start), int(count))
        ]
    try:
        row = np.asarray(value, dtype=float).ravel()
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{path or 'the value'} is of {type(space).__name__}, of which only numbers and strings can be recorded, "
            f"not {type(value).__name__}. Wrap the environment so that it gives one of Gymnasium's own spaces."
        ) from error
    return [float(number) for number in row]


def _one_hot(place: int, count: int) -> list[float]:
    if not 0 <= place < count:
        raise ValueError(f"value {place} is not one of the {count} of its space.")
    row = [0.0] * count
    row[place] = 1.0
    return row


def _names(space: gymnasium.Space[Any], path: str) -> Iterator[str]:
    if isinstance(space, spaces.Dict | spaces.Tuple):
        for key, part in _parts(space):
            yield from _names(part, _joined(path, key))
    elif isinstance(space, spaces.OneOf):
        yield from (f"{path}={place}" for place in range(len(space.spaces)))
        for place, part in enumerate(space.spaces):
            yield from _names(part, _joined(path, place))
    elif isinstance(space, spaces.Discrete):
        yield from (f"{path}={int(space.start) + place}" for place in range(int(space.n)))
    elif isinstance(space, spaces.MultiDiscrete):
        for place, (start, count) in enumerate(zip(np.ravel(space.start), np.ravel(space.nvec), strict=True)):
            yield from (f"{path}[{place}]={int(start) + value}" for value in range(int(count)))
    elif isinstance(space, spaces.Box | spaces.MultiBinary) and _is_plain(space):
        shape = space.shape or ()
        yield from (
            path if not shape else f"{path}[{','.join(map(str, place))}]" for place in np.ndindex(*shape)
        )


def _sets(space: gymnasium.Space[Any], path: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    if isinstance(space, spaces.Dict | spaces.Tuple | spaces.OneOf):
        for key, part in _parts(space):
            yield from _sets(part, _joined(path, key))
    elif isinstance(space, spaces.Sequence):
        if own := tuple(_names(space.feature_space, "")):
            yield path, own
        for name, names in _sets(space.feature_space, f"{path}[]"):
            yield name, ("element", *names)
    elif isinstance(space, spaces.Graph):
        yield _joined(path, "nodes"), tuple(_names(space.node_space, ""))
        if space.edge_space is not None:
            yield _joined(path, "edges"), ("source", "target", *_names(space.edge_space, ""))


def _leaves(space: gymnasium.Space[Any]) -> Iterator[gymnasium.Space[Any]]:
    """The spaces of which it is made, those of the elements of sequences too."""
    if isinstance(space, spaces.Dict | spaces.Tuple | spaces.OneOf):
        for _, part in _parts(space):
            yield from _leaves(part)
    elif isinstance(space, spaces.Sequence):
        yield from _leaves(space.feature_space)
    else:
        yield space


def _parts(space: spaces.Dict | spaces.Tuple | spaces.OneOf) -> list[tuple[Any, gymnasium.Space[Any]]]:
    return list(space.spaces.items() if isinstance(space.spaces, Mapping) else enumerate(space.spaces))


def _is_plain(space: gymnasium.Space[Any]) -> bool:
    if isinstance(space, spaces.Box):
        return not is_picture(space)
    return isinstance(space, spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary)


def is_picture(space: spaces.Box) -> bool:
    """Whether its values are one or several pictures: bytes from 0 to 255, at least 16 pixels high and wide."""
    if space.dtype != np.uint8 or len(space.shape) not in (2, 3, 4):
        return False
    height, width = _picture_size(space.shape)
    return (
        min(height, width) >= _SMALLEST_PICTURE
        and bool((space.low == 0).all())
        and bool((space.high == 255).all())
    )


def _picture_size(shape: tuple[int, ...]) -> tuple[int, int]:
    return (shape[-3], shape[-2]) if _has_channels_last(shape) else (shape[-2], shape[-1])


def _has_channels_last(shape: tuple[int, ...]) -> bool:
    return len(shape) > 2 and shape[-1] in _CHANNELS


def _pictures(array: np.ndarray[Any, Any], path: str) -> dict[str, np.ndarray[Any, Any]]:
    """By name: one picture, or those of a stack. A first axis of 3, where no last one holds the channels, does."""
    if _has_channels_last(array.shape):
        stack = array.reshape(-1, *array.shape[-3:])
    elif array.ndim > 2 and array.shape[-3] == 3:
        stack = np.moveaxis(array.reshape(-1, *array.shape[-3:]), 1, -1)
    else:
        stack = array.reshape(-1, *array.shape[-2:])
    pictures = [picture[..., 0] if picture.shape[2:] == (1,) else picture for picture in stack]
    if len(pictures) == 1:
        return {path: pictures[0]}
    return {f"{path}[{place}]": picture for place, picture in enumerate(pictures)}


def picture_url(array: np.ndarray[Any, Any]) -> str:
    """A picture, bytes, as the data URL of a PNG. Needs pillow."""
    from PIL import Image

    out = io.BytesIO()
    Image.fromarray(array).save(out, "PNG")
    return "data:image/png;base64," + base64.b64encode(out.getvalue()).decode()


def _joined(path: str, key: Any) -> str:
    return f"{path}.{key}" if path else str(key)
