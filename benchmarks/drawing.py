"""Line charts as SVG, readable in light and dark."""

import math
from collections.abc import Mapping, Sequence
from html import escape

# Okabe and Ito (2008).
COLOURS = ("#0072B2", "#E69F00", "#D55E00", "#009E73", "#CC79A7", "#56B4E9")
WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 640, 360, 64, 40, 36, 64
_GREY = "#808080"


def lines(title: str, series: Mapping[str, Sequence[tuple[float, float]]]) -> str:
    """Both axes logarithmic. series: by name, points (x, y), all above 0."""
    points = [point for entry in series.values() for point in entry]
    xs, ys = ([math.log10(point[axis]) for point in points] for axis in (0, 1))
    low, high = math.floor(min(ys)), math.ceil(max(ys))

    def place(x: float, y: float) -> tuple[float, float]:
        across = (math.log10(x) - min(xs)) / (max(xs) - min(xs) or 1)
        up = (math.log10(y) - low) / (high - low or 1)
        return LEFT + across * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM)

    out = _opened(title)
    for power in range(low, high + 1):
        _, y = place(10 ** min(xs), 10**power)
        out.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="{_GREY}" stroke-opacity=".3"/>')
        out.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{10**power:g}</text>')
    out += [
        f'<text x="{place(x, 10**low)[0]:.1f}" y="{HEIGHT - 16}" text-anchor="middle">{x:g}</text>'
        for x in sorted({point[0] for point in points})
    ]
    for (name, found), colour in zip(series.items(), COLOURS, strict=False):
        path = _joined([place(*point) for point in found])
        x, y = place(*found[-1])
        out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        out.append(f'<text x="{x + 6:.1f}" y="{y + 4:.1f}" fill="{colour}">{escape(name)}</text>')
    return "\n".join([*out, "</svg>"]) + "\n"


def shares(
    title: str, series: Mapping[str, Sequence[tuple[float, float, float, float]]], mark: tuple[str, float]
) -> str:
    """Shares (0 to 1) over a logarithmic axis, each with its interval.

    series: by name, (x, y, low, high). mark: a level drawn across, with its name.
    """
    rows = [row for entry in series.values() for row in entry]
    left, right = (math.log10(edge(row[0] for row in rows)) for edge in (min, max))
    low = math.floor(20 * min(mark[1], *(row[2] for row in rows))) / 20
    high = math.ceil(20 * max(mark[1], *(row[3] for row in rows))) / 20

    def place(x: float, y: float) -> tuple[float, float]:
        across, up = (math.log10(x) - left) / (right - left or 1), (y - low) / (high - low or 1)
        return LEFT + across * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM)

    out = _opened(title)
    for step in range(round(20 * low), round(20 * high) + 1):
        _, y = place(10**left, step / 20)
        out.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="{_GREY}" stroke-opacity=".3"/>')
        out.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{5 * step} %</text>')
    out += [
        f'<text x="{place(x, low)[0]:.1f}" y="{HEIGHT - 16}" text-anchor="middle">{x:g}</text>'
        for x in sorted({row[0] for row in rows})
    ]
    out += _mark(mark[0], place(10**left, mark[1])[1])
    placed = {
        name: [(place(x, y), place(x, bottom), place(x, top)) for x, y, bottom, top in found]
        for name, found in series.items()
    }
    return "\n".join([*out, *_banded(placed), "</svg>"]) + "\n"


def levels(
    title: str,
    series: Mapping[str, Sequence[tuple[float, float, float, float]]],
    across: str,
    mark: tuple[str, float] | None = None,
) -> str:
    """Numbers, each with its interval, over what is named by `across`. Both axes are linear, the upright one from 0."""
    rows = [row for entry in series.values() for row in entry]
    left, right = min(row[0] for row in rows), max(row[0] for row in rows)
    low, high = min(0.0, *(row[2] for row in rows)), max(0.0, *(row[3] for row in rows))
    step = round_step((high - low) / 4)
    low, high = math.floor(low / step) * step, math.ceil(high / step) * step

    def place(x: float, y: float) -> tuple[float, float]:
        along, up = (x - left) / (right - left or 1), (y - low) / (high - low or 1)
        return LEFT + along * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM)

    out = _opened(title)
    for number in range(round((high - low) / step) + 1):
        value = low + number * step
        _, y = place(left, value)
        out.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="{_GREY}" stroke-opacity=".3"/>')
        out.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{round(value, 6):g}</text>')
    for part in range(5):
        x = left + part / 4 * (right - left)
        out.append(
            f'<text x="{place(x, low)[0]:.1f}" y="{HEIGHT - 22}" text-anchor="middle">{round(x):,}</text>'
        )
    out.append(f'<text x="{WIDTH / 2}" y="{HEIGHT - 6}" text-anchor="middle">{escape(across)}</text>')
    if mark is not None:
        out += _mark(mark[0], place(left, mark[1])[1])
    placed = {
        name: [(place(x, y), place(x, bottom), place(x, top)) for x, y, bottom, top in found]
        for name, found in series.items()
    }
    return "\n".join([*out, *_banded(placed), "</svg>"]) + "\n"


_Point = tuple[float, float]


def round_step(about: float) -> float:
    """1, 2 or 5 times a power of ten, the largest that is no more than `about`."""
    power = 10.0 ** math.floor(math.log10(about or 1.0))
    return next(power * factor for factor in (5, 2, 1) if power * factor <= about * 1.000001 or factor == 1)


def _mark(name: str, y: float) -> list[str]:
    """A level drawn across, with its name."""
    return [
        f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="{_GREY}" stroke-dasharray="4 4"/>',
        f'<text x="{WIDTH - RIGHT}" y="{y - 4:.1f}" text-anchor="end">{escape(name)}</text>',
    ]


def _banded(placed: Mapping[str, Sequence[tuple[_Point, _Point, _Point]]]) -> list[str]:
    """Lines in their bands, with their names. placed: by name, (point, bottom, top)."""
    out = []
    for number, (name, found) in enumerate(placed.items()):
        colour = COLOURS[number % len(COLOURS)]
        outline = [*(top for _, _, top in found), *(bottom for _, bottom, _ in reversed(found))]
        points = _joined([point for point, _, _ in found])
        out.append(f'<polygon points="{_joined(outline)}" fill="{colour}" fill-opacity=".12"/>')
        out.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        x = LEFT + 12 + number % 3 * 180
        y = HEIGHT - BOTTOM - 12 - 16 * (number // 3)
        out.append(f'<text x="{x}" y="{y}" fill="{colour}">{escape(name)}</text>')
    return out


def _joined(points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


def _opened(title: str) -> list[str]:
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
        f'font-size="12" fill="{_GREY}"><title>{escape(title)}</title>',
        f'<text x="{LEFT}" y="20" font-size="14">{escape(title)}</text>',
    ]
