"""The renderer of the step-encoder: a trajectory as chunks of token ids, append-only.

What a step renders to depends on that step alone; only a trajectory over `max_tokens` loses chunks from its middle.
"""

import hashlib
import threading
from array import array
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

from tokenizers import Tokenizer

from workers.errors import InvalidRecord, RewardError
from workers.schema import Features, Part, Step, Task, Text, TokenIds, Trajectory
from workers.schema.conditions import CONDITIONS, Condition, conditions_read
from workers.schema.pictures import picture_places
from workers.schema.records import Source
from workers.text.grounding import grounding
from workers.text.negations import is_turned, without_negation
from workers.text.pictures import MOST_PIXELS, PICTURE_TOKENS, Picture, PictureReading
from workers.text.rendered import Content, UnsharedInput
from workers.text.segments import GAP_TEXT, SOURCES, Segment, segments
from workers.text.speakers import ALL_SOURCES, with_names

FRAME = 2  # the tokens put around a chunk of a BERT-type encoder: [CLS] ... [SEP]
# Of texts that are likely to come again: prompts of groups, trajectories that grow.
_KNOWN_BYTES = 16 * 1024**2
_CONDITION_STEP, TURNED_STEP = -2, -3
_ENTRY = 300  # bytes of a dictionary's entry with its key, roughly


@dataclass(frozen=True, slots=True)
class Chunk:
    """ids: without the frame. source: place in SOURCES, or after them the place of a condition. agent_step: None
    outside agent steps; step: -1 for a gap, -2 for a condition, -3 for one that is turned around.
    picture: of a chunk that is one, and has no ids."""

    ids: tuple[int, ...]
    source: int
    step: int
    agent_step: int | None
    picture: Picture | None = None

    def size(self, frame: int) -> int:
        """In tokens, with the frame of a text."""
        return len(self.ids) + frame if self.picture is None else PICTURE_TOKENS


@dataclass(frozen=True)
class Chunks(UnsharedInput):
    """A trajectory as what the step-encoder reads.

    reads: by agent_step, the chunk its value is read at: its last one, observations included; None if dropped.
    start: how many chunks come before the first agent step; the baseline is read at the last of them.
    cut: tokens that were left out. task_room: the tokens that the task's chunks may have, where some were left out.
    frame: the tokens put around every chunk.
    """

    chunks: tuple[Chunk, ...]
    reads: tuple[int | None, ...]
    start: int
    truncated: bool
    cut: int = 0
    task_room: int | None = None
    frame: int = FRAME

    @property
    def tokens(self) -> int:
        return sum(chunk.size(self.frame) for chunk in self.chunks)

    @cached_property
    def key(self) -> bytes:
        """Equal for items that the model cannot tell apart."""
        numbers = array("q", (self.start, self.truncated, len(self.reads)))
        numbers.extend(-1 if read is None else read for read in self.reads)
        for chunk in self.chunks:
            source = -chunk.source if chunk.step == TURNED_STEP else chunk.source
            numbers.extend((source, len(chunk.ids), *chunk.ids))
        seen = "".join(chunk.picture.digest for chunk in self.chunks if chunk.picture is not None)
        seen += "".join(str(place) for place, chunk in enumerate(self.chunks) if chunk.picture is not None)
        return hashlib.blake2b(numbers.tobytes() + seen.encode(), digest_size=16).digest()

    @cached_property
    def grounding(self) -> tuple[tuple[float, ...], ...]:
        """[chunks][grounding.NAMES]"""
        own = {SOURCES.index("agent"), SOURCES.index("reasoning")}
        return grounding((chunk.ids, chunk.source in own) for chunk in self.chunks)

    @cached_property
    def overlap(self) -> list[list[float]]:
        """[chunks][2 * CONDITIONS]: by condition, the share of the chunk's tokens that are in it, and of its distinct
        tokens those that the agent has said up to and with the chunk; 0 without it."""
        own = {SOURCES.index("agent"), SOURCES.index("reasoning")}
        found = [[0.0] * (2 * len(CONDITIONS)) for _ in self.chunks]
        for place in range(len(CONDITIONS)):
            stated = {
                id_ for chunk in self.chunks if chunk.source == len(SOURCES) + place for id_ in chunk.ids
            }
            said: set[int] = set()
            for row, chunk in zip(found, self.chunks, strict=True):
                if not stated or chunk.source >= len(SOURCES):
                    continue
                said |= stated.intersection(chunk.ids) if chunk.source in own else set()
                row[2 * place] = sum(id_ in stated for id_ in chunk.ids) / max(1, len(chunk.ids))
                row[2 * place + 1] = len(said) / len(stated)
        return found


class _TokenCache:
    """The tokens of texts, by their hash, in at most so many bytes; least recently used go first. Safe to share."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._bytes = 0
        self._by_hash: OrderedDict[bytes, array[int]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: bytes) -> tuple[int, ...] | None:
        with self._lock:
            found = self._by_hash.get(key)
            if found is None:
                return None
            self._by_hash.move_to_end(key)
        return tuple(found)

    def put(self, key: bytes, ids: tuple[int, ...]) -> None:
        kept = array("i", ids)
        with self._lock:
            if key in self._by_hash:
                return
            self._by_hash[key] = kept
            self._bytes += _size(kept)
            while self._bytes > self.most:
                self._bytes -= _size(self._by_hash.popitem(last=False)[1])


def _size(kept: "array[int]") -> int:
    return len(kept) * kept.itemsize + _ENTRY


@dataclass(frozen=True)
class ChunkRenderer:
    """tokenizer: of the encoder; what it truncates or pads on its own is switched off. before, after: the special
    tokens around every chunk. prompt: a text that stands before each, for encoders that were trained with one.
    names_speakers: whether a step begins with the name of its speaker, where it has one. conditioned: which conditions
    are read; they stand before the trajectory, in chunks with sources of their kind. pictures: how pictures are read;
    None: not at all. splits_negations: whether a condition that says "not" is read as what it is about, and marked
    as turned around. Safe to use from any thread."""

    tokenizer: Tokenizer
    before: tuple[int, ...]
    after: tuple[int, ...]
    chunk_tokens: int
    max_tokens: int
    names_speakers: bool = False
    prompt: str = ""
    conditioned: tuple[Condition, ...] = ()
    pictures: PictureReading | None = None
    splits_negations: bool = False
    rewrites = False

    def __post_init__(self) -> None:
        self.tokenizer.no_truncation()
        self.tokenizer.no_padding()

    @property
    def named_sources(self) -> frozenset[Source]:
        return ALL_SOURCES if self.names_speakers else frozenset()

    def render(self, content: Content, *, task_tokens: int | None = None) -> Chunks:
        """Raises RewardError for content that has no text or no agent step, and for ids outside the vocabulary.

        task_tokens: at most so many for the task of a trajectory.
        """
        if isinstance(content, Features):
            raise RewardError(
                "this model reads text; send messages, text or a trajectory.", pointer="/features"
            )
        if isinstance(content, TokenIds):
            return self._finish([self._chunk(piece, "agent", 0, 0) for piece in self._pieces_of_ids(content)])
        if isinstance(content, Text):
            step = Step(source="agent", message=(Part(text=content.text),))
            content = Trajectory(steps=(step,), task=Task(id=""))
        if not content.agent_steps:
            raise RewardError("the trajectory has no agent step, so there is nothing to score.")
        shown = with_names(content) if self.names_speakers else content
        return self._finish(list(self._chunks(shown)), task_tokens)

    def count(self, text: str) -> int:
        return len(self.token_ids(text))

    def model_input(self, rendered: Chunks) -> list[Any]:
        shown = [
            [chunk.source, chunk.step, chunk.agent_step, *self.framed(chunk.ids)]
            if chunk.picture is None
            else [chunk.source, chunk.step, chunk.agent_step, chunk.picture.digest]
            for chunk in rendered.chunks
        ]
        return [*shown, list(rendered.reads), rendered.start, rendered.truncated]

    def settings(self) -> list[Any]:
        return [
            [self.chunk_tokens, self.max_tokens],
            self.tokenizer.to_str(),
            *self.prompt_settings(),
            *self._picture_settings(),
        ]

    def prompt_settings(self) -> list[str]:
        """None without a prompt, as before there were any."""
        return [self.prompt] if self.prompt else []

    def _picture_settings(self) -> list[Any]:
        """None where pictures are not read, as before they were."""
        return [] if self.pictures is None else [[self.pictures.side, PICTURE_TOKENS, self.pictures.name]]

    @cached_property
    def prompt_ids(self) -> tuple[int, ...]:
        return (
            tuple(self.tokenizer.encode(self.prompt.rstrip(), add_special_tokens=False).ids)
            if self.prompt
            else ()
        )

    @property
    def frame(self) -> int:
        """Tokens around every chunk, those of the prompt included."""
        return len(self.before) + len(self.prompt_ids) + len(self.after)

    def framed(self, ids: Iterable[int]) -> tuple[int, ...]:
        """ids: of a chunk."""
        return (*self.before, *self.prompt_ids, *ids, *self.after)

    def token_ids(self, text: str) -> Sequence[int]:
        key = hashlib.blake2b(text.encode(), digest_size=16).digest()
        known = self._known.get(key)
        if known is None:
            known = self._tokenize(text)
            self._known.put(key, known)
        return known

    def _tokenize(self, text: str) -> tuple[int, ...]:
        """As after the prompt, where the text has other tokens there: many tokenizers mark the beginning of a word."""
        if self.prompt_ids and text:
            ids = self.tokenizer.encode(self.prompt + text, add_special_tokens=False).ids
            if tuple(ids[: len(self.prompt_ids)]) == self.prompt_ids:
                return tuple(ids[len(self.prompt_ids) :])
        return tuple(self.tokenizer.encode(text, add_special_tokens=False).ids)

    @cached_property
    def _known(self) -> "_TokenCache":
        return _TokenCache(_KNOWN_BYTES)

    def _chunks(self, trajectory: Trajectory) -> Iterable[Chunk]:
        for name, text in conditions_read(trajectory, self.conditioned):
            mark, read = _CONDITION_STEP, text
            if self.splits_negations:
                mark = TURNED_STEP if is_turned(name, text) else _CONDITION_STEP
                read = without_negation(name, text)
            for piece in self.split(self.token_ids(read)):
                yield Chunk(tuple(piece), len(SOURCES) + CONDITIONS.index(name), mark, None)
        agent_step, pixels_left = -1, [MOST_PIXELS]
        for index, step in enumerate(trajectory.steps):
            agent_step += step.source == "agent"
            number = agent_step if step.source == "agent" else None
            for segment in segments(step):
                for piece in self.split(self.token_ids(segment.text)):
                    yield self._chunk(piece, segment.source, index, number)
            yield from self._picture_chunks(step, index, number, pixels_left)

    def _picture_chunks(self, step: Step, index: int, number: int | None, left: list[int]) -> Iterable[Chunk]:
        """Those of a step, after its text. Raises RewardError that names the step."""
        if self.pictures is None:
            return
        for source, parts in picture_places(step):
            try:
                for picture in self.pictures.pictures(parts, left):
                    yield Chunk((), SOURCES.index(source), index, number, picture)
            except InvalidRecord as error:
                raise InvalidRecord(f"step {index + 1}: {error.message}") from None

    def _chunk(self, ids: Iterable[int], source: str, step: int, agent_step: int | None) -> Chunk:
        return Chunk(tuple(ids), SOURCES.index(source), step, agent_step)

    def split(self, ids: Sequence[int]) -> list[Sequence[int]]:
        """In as few chunks as it takes, all of about one length: a last chunk of three tokens would say little."""
        count = max(1, -(-len(ids) // self.chunk_tokens))
        cuts = [round(len(ids) * piece / count) for piece in range(count + 1)]
        return [ids[start:end] for start, end in pairwise(cuts)]

    def _pieces_of_ids(self, content: TokenIds) -> list[Sequence[int]]:
        ids, size = list(content.ids), self.tokenizer.get_vocab_size()
        bad = next((place for place, id_ in enumerate(ids) if not 0 <= id_ < size), None)
        if bad is not None:
            raise RewardError(
                f"token id {ids[bad]} is outside this model's vocabulary of {size}.",
                pointer=f"/input_ids/{bad}",
            )
        # The frame is put around every chunk; one that the client's tokenizer put there is not doubled.
        before, after = len(self.before), len(ids) - len(self.after)
        if before <= after and tuple(ids[:before]) == self.before and tuple(ids[after:]) == self.after:
            ids = ids[before:after]
        return self.split(ids)

    def _finish(self, chunks: list[Chunk], task_tokens: int | None = None) -> Chunks:
        total = 1 + max(chunk.agent_step for chunk in chunks if chunk.agent_step is not None)
        while chunks[-1].agent_step is None:  # nothing is read after the last agent step
            chunks.pop()
        kept, task_room = self._fit(chunks, task_tokens)
        truncated = kept is not chunks
        last = {chunk.agent_step: place for place, chunk in enumerate(kept) if chunk.agent_step is not None}
        start = next(place for place, chunk in enumerate(kept) if chunk.agent_step is not None)
        start -= truncated and kept[start - 1].step == -1  # the gap belongs to what comes after the task
        reads = tuple(last.get(index) for index in range(total))
        cut = max(0, self._size_of(chunks) - self._size_of(kept))
        kept = [self._decoded(chunk) for chunk in kept] if self.pictures is not None else kept
        return Chunks(tuple(kept), reads, start, truncated, cut, task_room, self.frame)

    def _decoded(self, chunk: Chunk) -> Chunk:
        """Of what is left of a trajectory: what was cut costs nothing."""
        if chunk.picture is None:
            return chunk
        try:
            return replace(chunk, picture=chunk.picture.decoded())
        except InvalidRecord as error:
            raise InvalidRecord(f"step {chunk.step + 1}: {error.message}") from None

    def _fit(self, chunks: list[Chunk], task_tokens: int | None) -> tuple[list[Chunk], int | None]:
        """Too long: the task (the chunks before the first agent step) and the latest chunks stay, with a gap."""
        start = next(place for place, chunk in enumerate(chunks) if chunk.agent_step is not None)
        is_limited = task_tokens is not None and self._size_of(chunks[:start]) > task_tokens
        if self._size_of(chunks) <= self.max_tokens and not is_limited:
            return chunks, None
        gap = self._chunk(self.token_ids(GAP_TEXT), Segment(GAP_TEXT, "gap").source, -1, None)
        room = self.max_tokens - len(gap.ids) - self.frame
        rest = self._size_of(chunks[start:])
        latest = chunks[-1].size(self.frame)
        task_room = room - min(rest, max(latest, room // 2))
        if task_tokens is not None:
            task_room = min(task_room, task_tokens)
        head = self._prefix(chunks[:start], task_room)
        used = self._size_of(chunks[:head])
        tail = self._prefix(chunks[: start - 1 if start else None : -1], room - used)
        return [*chunks[:head], gap, *chunks[len(chunks) - tail :]], task_room if head < start else None

    def _size_of(self, chunks: Sequence[Chunk]) -> int:
        return sum(chunk.size(self.frame) for chunk in chunks)

    def _prefix(self, chunks: list[Chunk], room: int) -> int:
        """How many of the first chunks fit into `room` tokens."""
        for count, chunk in enumerate(chunks):
            room -= chunk.size(self.frame)
            if room < 0:
                return count
        return len(chunks)
