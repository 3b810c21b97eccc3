r"""Prompts and answers that a trainer logged as rendered text, read back into messages.

Text with the marks of a chat template is read by `chat_text`. verl and TRL log what a tokenizer decodes without special
tokens, of which Qwen's template leaves "system\n...\nuser\n...\nassistant\n": the marks are put back before it is read.
"""

from dataclasses import dataclass
from typing import Any

from apps.trajectories.formats.data_rows.trainer_rows import Messages
from workers.schema.chat_text import FORMATS, detect_format, read_pair
from workers.schema.patterns import TextPattern

FLAGS = "reading_flags"  # key of the metadata: what the text does not tell
_BARE = TextPattern(
    r"(?s)\A(?:system\n.*\n)?user\n.*\nassistant\n(?:<think>\n{0,2}(?:\n*</think>\n{0,2})?)?\z"
)
_TURN = TextPattern(r"(?:\A|\n)(system|user|assistant|tool)\n")
_RESULTS = TextPattern(r"(?s)\n(?:user|tool)\n(<tool_response>.*?</tool_response>\s*)\nassistant\n")
_OPEN, _CLOSE = "<|im_start|>", "<|im_end|>"


@dataclass(frozen=True, slots=True)
class RenderedSample:
    """Messages of the prompt and of the answer. about: metadata about the reading."""

    prompt: Messages
    answer: Messages
    about: dict[str, Any]


def read_rendered(prompt: str, answer: str) -> RenderedSample | None:
    """None where the prompt is plain text."""
    template = detect_format(prompt, is_prompt=True)
    if template is None and _BARE.match(prompt) is not None:
        template = FORMATS["chatml"]
        prompt, answer = _with_marks(prompt), _RESULTS.sub(_marked_results, answer)
    found = None if template is None else read_pair(prompt, answer, named=template)
    if found is None or not any(message["role"] == "assistant" for message in found.response):
        return None
    return RenderedSample(found.prompt, found.response, {FLAGS: list(found.flags)} if found.flags else {})


def _with_marks(prompt: str) -> str:
    turns = list(_TURN.finditer(prompt))
    ends = [turn.start() for turn in turns[1:]]
    closed = [
        f"{_OPEN}{turn[1]}\n{prompt[turn.end() : end]}{_CLOSE}\n"
        for turn, end in zip(turns, ends, strict=False)
    ]
    return f"{''.join(closed)}{_OPEN}assistant\n{prompt[turns[-1].end() :]}"


def _marked_results(results: Any) -> str:
    return f"{_CLOSE}\n{_OPEN}user\n{results[1].strip()}{_CLOSE}\n{_OPEN}assistant\n"
