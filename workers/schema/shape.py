"""How much a JSON document may hold, found out from its bytes before anything is built from them.

60 MB of `[],[],...` become gigabytes of objects and minutes of garbage collection, so counting afterwards is too late.
One pass of numpy over the bytes, about 2 ms for each MB, in pieces so that memory stays small and a document over a
limit is left at once. The document need not be valid: what is wrong with it otherwise is for the decoder to say.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from workers.errors import InvalidRecord

if TYPE_CHECKING:
    import numpy as np

_PIECE = 2**17  # bytes: fits the processor's cache
_FIRST_PIECE = 2**12
_QUOTE, _COMMA, _COLON = b'",:'
_AS_DIGITS = bytes(0x30 if byte in b"0123456789+-.eE" else 0x20 for byte in range(256))


@dataclass(frozen=True, slots=True)
class ShapeLimits:
    """values: elements of arrays and members of objects, in all. containers: arrays and objects. digits: of one number.
    string, key: bytes of one, as sent."""

    depth: int
    values: int
    containers: int
    string: int
    key: int = 4096
    digits: int = 1000

    @property
    def smallest(self) -> int:
        """A document of so few bytes passes none of them."""
        return min(self.depth, self.values, self.containers, self.string, self.key, self.digits)


# One trajectory, record or file of records: numeric observations may be long. Read by workers, not while others wait.
RECORD_LIMITS = ShapeLimits(
    depth=128, values=5_000_000, containers=1_000_000, string=64 * 2**20, key=64 * 2**10
)
# The body of an API call, which a process decodes while it has others to answer.
BODY_LIMITS = ShapeLimits(depth=64, values=1_000_000, containers=250_000, string=16 * 2**20)


class TooMuchJson(InvalidRecord):
    """A document over a limit. name: of ShapeLimits; limit: its value; at: the byte that passed it."""

    def __init__(self, message: str, *, name: str, limit: int, at: int, pointer: str | None = None) -> None:
        super().__init__(message, pointer=pointer)
        self.name, self.limit, self.place = name, limit, at


def check_json_shape(
    body: bytes | str, limits: ShapeLimits, *, pointer: str = "", start: int = 0, first: bool = False
) -> None:
    """Raises TooMuchJson with the limit that the document passes, and where. Costs memory for a piece of it only.

    start: where in `body` the document begins. first: what follows the document is not looked at, or it is cut off.
    Of text, characters are counted rather than bytes.
    """
    if len(body) - start > limits.smallest and not _is_surely_within(body, limits):
        _check(body, limits, pointer, start, first=first)


def _is_surely_within(body: bytes | str, limits: ShapeLimits) -> bool:
    """Whether a few counts show already that no limit is passed, which they do for most documents."""
    return (
        isinstance(body, bytes)
        and len(body) <= min(limits.values, limits.string, limits.key)
        and body.count(b"[") + body.count(b"{") <= min(limits.depth, limits.containers)
        and b"0" * (limits.digits + 1) not in body.translate(_AS_DIGITS)
    )


def _check(
    data: bytes | str, limits: ShapeLimits, pointer: str = "", start: int = 0, *, first: bool = False
) -> None:
    scan = _Scan(data, limits, pointer, start - 1, first)
    for place, piece in _pieces(data, start):
        scan.read(place, piece)
        if scan.ended:
            return
    scan.end()


def _pieces(data: bytes | str, start: int) -> Iterator[tuple[int, bytes]]:
    """Cut anywhere but within an escape; what is escaped is blotted out, at equal length. The first are small."""
    size = min(_FIRST_PIECE, _PIECE)
    while start < len(data):
        piece = _as_bytes(data[start : start + size])
        if piece.endswith(b"\\") and (len(piece) - len(piece.rstrip(b"\\"))) % 2:
            piece += _as_bytes(data[start + size : start + size + 1])
        length = len(piece)
        if b"\\" in piece:
            piece = piece.replace(b"\\\\", b"  ").replace(b'\\"', b"  ")
        yield start, piece
        start += length
        size = min(2 * size, _PIECE)


def _as_bytes(piece: bytes | str) -> bytes:
    """One byte for a character: none but ASCII counts."""
    return piece.encode("latin-1", "replace") if isinstance(piece, str) else piece


@dataclass(eq=False, slots=True)
class _Scan:
    """What was seen so far. kinds, places: of the last two marks, so that a key or number may lie across two pieces;
    begins: whether a string begins there."""

    data: bytes | str
    limits: ShapeLimits
    pointer: str
    before: int = -1
    first: bool = False
    ended: bool = False
    depth: int = 0
    values: int = 1
    containers: int = 0
    within: bool = False  # a string
    kinds: Any = field(init=False)
    places: Any = field(init=False)
    begins: Any = field(init=False)
    tables: "tuple[np.ndarray, np.ndarray]" = field(init=False)

    def __post_init__(self) -> None:
        import numpy as np  # here: not everything that reads the contracts reads documents of others

        is_mark, steps = np.zeros(256, bool), np.zeros(256, np.int32)
        is_mark[list(b'"[]{},:')] = True
        steps[list(b"[{")], steps[list(b"]}")] = 1, -1
        self.tables = is_mark, steps
        self.kinds, self.places = np.array([_COMMA], np.uint8), np.array([self.before], np.int64)
        self.begins = np.array([False])

    def read(self, start: int, piece: bytes) -> None:
        import numpy as np

        is_mark, steps = self.tables
        dense = np.frombuffer(piece, np.uint8)
        places = np.flatnonzero(is_mark[dense])
        kinds = dense[places]
        quotes = kinds == _QUOTE
        # From an opening quote up to before the closing one.
        within = np.bitwise_xor.accumulate(quotes) ^ self.within
        if len(within):
            self.within = bool(within[-1])
        real = quotes | ~within  # a mark inside a string is text
        kinds, places = kinds[real], places[real] + start
        outside = kinds != _QUOTE
        marks, spots = kinds[outside], places[outside]
        if self.first and (closing := np.flatnonzero(self.depth + np.cumsum(steps[marks]) <= 0)).size:
            self.ended, stop = True, int(closing[0]) + 1
            marks, spots = marks[:stop], spots[:stop]
            inside = places <= spots[-1]
            kinds, places, real = kinds[inside], places[inside], np.flatnonzero(real)[inside]
        self._count(marks, spots, steps)
        self.kinds = np.concatenate([self.kinds, kinds])
        self.places = np.concatenate([self.places, places])
        self.begins = np.concatenate([self.begins, within[real]])
        self._measure()

    def end(self) -> None:
        """What is between the last mark and the end of the document."""
        if self.within:
            self._refuse_string(len(self.data) - int(self.places[-1]) - 1, int(self.places[-1]), key=False)
        else:
            self._refuse_number(int(self.places[-1]), len(self.data))

    def _count(self, kinds: Any, places: Any, steps: Any) -> None:
        import numpy as np

        moves = steps[kinds]
        depths = self.depth + np.cumsum(moves, dtype=np.int64)
        opens = moves == 1
        values = self.values + np.cumsum(opens | (kinds == _COMMA), dtype=np.int64)
        containers = self.containers + np.cumsum(opens, dtype=np.int64)
        for name, found, what in (
            ("depth", depths, "nested too deeply: over {} levels"),
            ("containers", containers, "too large: over {} arrays and objects"),
            ("values", values, "too large: over {} values"),
        ):
            limit = getattr(self.limits, name)
            if len(found) and int(found.max()) > limit:
                self._refuse(name, what.format(f"{limit:,}"), int(places[int((found > limit).argmax())]))
        if len(kinds):
            self.depth, self.values = int(depths[-1]), int(values[-1])
            self.containers = int(containers[-1])

    def _measure(self) -> None:
        """Strings, keys and numbers: the gaps between marks."""
        import numpy as np

        gaps = np.diff(self.places) - 1
        strings = self.begins[:-1]
        smallest = min(self.limits.string, self.limits.key, self.limits.digits)
        for index in np.flatnonzero(gaps > smallest).tolist():
            at, after = int(self.places[index]), int(self.places[index + 1])
            if strings[index]:
                is_key = index + 2 < len(self.kinds) and self.kinds[index + 2] == _COLON
                self._refuse_string(int(gaps[index]), at, key=is_key)
            else:
                self._refuse_number(at, after)
        self.kinds, self.places, self.begins = self.kinds[-2:], self.places[-2:], self.begins[-2:]

    def _refuse_string(self, length: int, at: int, *, key: bool) -> None:
        name = "key" if key else "string"
        limit = getattr(self.limits, name)
        if length > limit:
            self._refuse(name, f"too large: a {name} of {length:,} bytes, of at most {limit:,}", at)

    def _refuse_number(self, at: int, after: int) -> None:
        limit = self.limits.digits
        length = len(_as_bytes(self.data[at + 1 : after]).strip()) if after - at - 1 > limit else 0
        if length > limit:
            self._refuse("digits", f"too large: a number of {length:,} digits, of at most {limit:,}", at + 1)

    def _refuse(self, name: str, what: str, at: int) -> None:
        limit = getattr(self.limits, name)
        unit = "character" if isinstance(self.data, str) else "byte"
        message = f"{what}, at {unit} {at:,}. Send less of it, or in parts."
        raise TooMuchJson(message, name=name, limit=limit, at=at, pointer=self.pointer)
