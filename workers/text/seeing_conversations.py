"""The renderer of decoders that see: a conversation with the tokens that stand for its pictures, where they are.

In the text a picture is one private character, so that chat templates, cuts and counts treat it as a word; when the
text is tokenised, it becomes the block of ids that the decoder was trained on.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from workers.errors import InvalidRecord, RewardError
from workers.schema import Part, Step, Text, Trajectory
from workers.schema.conditions import Condition
from workers.schema.patterns import TextPattern
from workers.text.conversations import ConversationRenderer, Tokens
from workers.text.pictures import MOST_PIXELS, Picture, PictureReading
from workers.text.rendered import Content

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_FIRST, MOST_PICTURES = 0x100000, 4096  # private characters that no script and no icon font uses
_MARKS = TextPattern(f"[{chr(_FIRST)}-{chr(_FIRST + MOST_PICTURES - 1)}]")
_REPLACED = "\ufffd"


@dataclass(frozen=True)
class SeeingTokens(Tokens):
    """pictures: in the order of the blocks of ids that stand for them."""

    pictures: tuple[Picture, ...] = ()

    @cached_property
    def key(self) -> bytes:
        seen = "".join(picture.digest for picture in self.pictures)
        return blake2b(super().key + seen.encode(), digest_size=16).digest()

    @property
    def family(self) -> bytes:
        """Nothing is shared between items."""
        return b""


class SeeingConversationRenderer(ConversationRenderer):
    """pictures: how they are read. block: the ids that stand for one."""

    def __init__(
        self,
        tokenizer: "PreTrainedTokenizerBase",
        max_tokens: int,
        *,
        pictures: PictureReading,
        block: Sequence[int],
        names_speakers: bool = False,
        conditioned: tuple[Condition, ...] = (),
    ) -> None:
        self.pictures = pictures
        self.block = tuple(block)
        super().__init__(tokenizer, max_tokens, names_speakers=names_speakers, conditioned=conditioned)

    def render(self, content: Content, *, task_tokens: int | None = None) -> Tokens:
        """Raises RewardError where a picture is damaged, or the pictures are too many or too large."""
        if isinstance(content, Text):
            content = Text(_MARKS.sub(_REPLACED, content.text))
        return super().render(content, task_tokens=task_tokens)

    def encode(self, text: str) -> list[int]:
        """The ids of a text. A mark of a picture becomes its block, which begins with -1 less the picture's number
        until `_conversation` has read that."""
        found: list[int] = []
        at = 0
        for mark in _MARKS.finditer(text):
            found += super().encode(text[at : mark.start()])
            found += [_FIRST - ord(mark[0]) - 1, *self.block[1:]]
            at = mark.end()
        return found + super().encode(text[at:])

    def shorten(self, text: str, tokens: int) -> str:
        """Of a text that is shortened, the pictures go first."""
        return super().shorten(_MARKS.sub("", text), tokens)

    def settings(self) -> list[Any]:
        return [*super().settings(), [self.pictures.side, self.pictures.name, [*self.block]]]

    def model_input(self, rendered: Tokens) -> list[Any]:
        return [*super().model_input(rendered), [picture.digest for picture in _pictures(rendered)]]

    def _conversation(self, trajectory: Trajectory, task_tokens: int | None) -> Tokens:
        marked, pictures = self._marked(trajectory)
        found = super()._conversation(marked, task_tokens)
        numbers = [-1 - token for token in found.ids if token < 0]
        if numbers != sorted(set(numbers)) or any(number >= len(pictures) for number in numbers):
            raise RewardError(
                f"the trajectory has private characters (U+{_FIRST:X} to U+{_FIRST + MOST_PICTURES - 1:X}) outside the "
                "texts of its messages; remove them."
            )
        ids = tuple(self.block[0] if token < 0 else token for token in found.ids)
        given = {field.name: getattr(found, field.name) for field in fields(Tokens)} | {"ids": ids}
        return SeeingTokens(**given, pictures=tuple(_decoded(*pictures[number]) for number in numbers))

    def _marked(self, trajectory: Trajectory) -> tuple[Trajectory, list[tuple[int, Picture]]]:
        """With a mark in the place of each picture at hand, and these in order, each with its step."""
        left, found = [MOST_PIXELS], list[tuple[int, Picture]]()
        steps = []
        for index, step in enumerate(trajectory.steps):
            try:
                steps.append(self._marked_step(index, step, left, found))
            except InvalidRecord as error:
                raise InvalidRecord(f"step {index + 1}: {error.message}") from None
        return replace(trajectory, steps=tuple(steps)), found

    def _marked_step(self, index: int, step: Step, left: list[int], found: list[tuple[int, Picture]]) -> Step:
        def marked(parts: Iterable[Part]) -> tuple[Part, ...]:
            return tuple(self._marked_part(index, part, left, found) for part in parts)

        message = marked(step.message)
        results = tuple(replace(result, content=marked(result.content)) for result in step.observation)
        return replace(step, message=message, observation=results)

    def _marked_part(self, index: int, part: Part, left: list[int], found: list[tuple[int, Picture]]) -> Part:
        picture = next(self.pictures.pictures((part,), left), None)
        if picture is None:
            return part if not part.text else replace(part, text=_MARKS.sub(_REPLACED, part.text))
        if len(found) == MOST_PICTURES:
            raise InvalidRecord(f"a trajectory can have at most {MOST_PICTURES:,} pictures.")
        found.append((index, picture))
        return Part(text=chr(_FIRST + len(found) - 1))


def _pictures(rendered: Tokens) -> tuple[Picture, ...]:
    return rendered.pictures if isinstance(rendered, SeeingTokens) else ()


def _decoded(index: int, picture: Picture) -> Picture:
    """Of what is left of a trajectory: what was cut costs nothing."""
    try:
        return picture.decoded()
    except InvalidRecord as error:
        raise InvalidRecord(f"step {index + 1}: {error.message}") from None
