"""What can be said of a picture without a trained encoder: colours, edges, and how its lines and columns are laid out.

The same picture has the same numbers on every machine. They distinguish interfaces and documents, not what is in a
photograph: that takes a vision model.
"""

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from workers.schema.pictures import Pixels

Floats = NDArray[np.float32]
Integers = NDArray[np.int32]
SIDE = 256  # pixels of the square that is looked at
GRID = 3
HUES, LEVELS, DIRECTIONS = 8, 6, 8
_INK = 0.09  # from the colour of the background, of 1: what differs by more is drawn on it
_LAYOUT = 14  # numbers of `_layout`
SIZE = 6 + HUES + LEVELS + DIRECTIONS + 3 + 2 * _LAYOUT
CELLS = 1 + GRID * GRID


class _Maps(NamedTuple):
    """What is known of each pixel, [height, width] each; colours [height, width, 3] in 0..1."""

    colours: Floats
    codes: Integers  # of the colour, to a sixteenth
    levels: Integers
    hues: Integers
    chroma: Floats
    directions: Integers
    strength: Floats

    def cut(self, rows: slice, columns: slice) -> "_Maps":
        parts: Any = (each[rows, columns] for each in self)
        return _Maps(*parts)


def picture_statistics(pixels: Pixels) -> Floats:
    """[CELLS, SIZE] of [SIDE, SIDE, 3]: of the whole, then of each cell of the grid, row by row."""
    maps = _maps(pixels.astype(np.float32) / np.float32(255))
    cuts = [round(SIDE * place / GRID) for place in range(GRID + 1)]
    spans = [slice(start, end) for start, end in pairwise(cuts)]
    cells = [maps.cut(rows, columns) for rows in spans for columns in spans]
    return np.stack([_statistics(each) for each in (maps, *cells)]).astype(np.float32)


def _maps(image: Floats) -> _Maps:
    red, green, blue = image[..., 0], image[..., 1], image[..., 2]
    grey = 0.299 * red + 0.587 * green + 0.114 * blue
    coarse = np.minimum((image * 16).astype(np.int32), 15)
    high = np.maximum(np.maximum(red, green), blue)
    chroma = high - np.minimum(np.minimum(red, green), blue)
    safe = np.where(chroma > 0, chroma, 1)
    hue = np.where(
        high == red,
        (green - blue) / safe % 6,
        np.where(high == green, (blue - red) / safe + 2, (red - green) / safe + 4),
    )
    down, across = np.gradient(grey)
    angle = np.arctan2(down, across) % np.pi
    return _Maps(
        image,
        (coarse[..., 0] * 16 + coarse[..., 1]) * 16 + coarse[..., 2],
        np.minimum((grey * LEVELS).astype(np.int32), LEVELS - 1),
        (hue / 6 * HUES).astype(np.int32) % HUES,
        chroma,
        (angle / np.pi * DIRECTIONS + 0.5).astype(np.int32) % DIRECTIONS,
        np.hypot(down, across),
    )


def _statistics(maps: _Maps) -> NDArray[np.float64]:
    """[SIZE]"""
    colours = maps.colours.reshape(-1, 3)
    mean = colours.mean(0)
    commonest = np.bincount(maps.codes.ravel()).argmax()
    background = colours[maps.codes.ravel() == commonest].mean(0)
    differences = np.abs(maps.colours - background)
    largest = np.maximum(np.maximum(differences[..., 0], differences[..., 1]), differences[..., 2])
    ink: NDArray[np.bool_] = np.greater(largest, _INK)
    directions = np.bincount(maps.directions.ravel(), maps.strength.ravel(), DIRECTIONS)
    return np.concatenate(
        [
            mean,
            np.sqrt(np.maximum((colours * colours).mean(0) - mean * mean, 0)),
            np.bincount(maps.hues.ravel(), maps.chroma.ravel(), HUES) / len(colours),
            np.bincount(maps.levels.ravel(), minlength=LEVELS) / len(colours),
            directions * (4.0 / len(colours)),
            background,
            _layout(ink),
            _layout(ink.T),
        ]
    )


def _layout(ink: NDArray[np.bool_]) -> NDArray[np.float64]:
    """[_LAYOUT]: how what is drawn lies in lines. ink: [height, width], where something is drawn.

    How many lines there are, how high and how far apart; where each begins, ends and has its middle, and how much
    these differ: of aligned lines, or centred ones, one of the three hardly does.
    """
    height, width = ink.shape
    drawn = ink.any(1)
    edges = np.flatnonzero(np.diff(np.concatenate([[0], drawn.astype(np.int8), [0]])))
    tops, bottoms = edges[::2], edges[1::2]
    if not len(tops):
        return np.zeros(_LAYOUT)
    lines: list[NDArray[np.bool_]] = [
        np.any(ink[top:bottom], axis=0) for top, bottom in zip(tops, bottoms, strict=True)
    ]
    begins = np.array([line.argmax() for line in lines]) / width
    ends = 1 - np.array([line[::-1].argmax() for line in lines]) / width
    heights, gaps = (bottoms - tops) / height, (tops[1:] - bottoms[:-1]) / height
    return np.array(
        [
            ink.mean(),
            len(tops) / 32,
            heights.mean(),
            heights.std(),
            heights.max(),
            gaps.mean() if len(gaps) else 0.0,
            gaps.std() if len(gaps) else 0.0,
            begins.min(),
            begins.std(),
            _neighbours(begins),
            ends.max(),
            ends.std(),
            ((begins + ends) / 2).std(),
            _neighbours((begins + ends) / 2),
        ]
    )


def _neighbours(places: NDArray[np.float64]) -> float:
    """How far neighbours are from each other, as a share of lines that do not continue the one before."""
    return float((np.abs(np.diff(places)) > 0.008).mean()) if len(places) > 1 else 0.0
