"""The format of a policy's chat template, by the name of a family or by the folder of its tokenizer."""

from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from jinja2 import TemplateError

from workers.errors import RewardError
from workers.schema.chat_text import ChatFormat, detect_format, named_format
from workers.schema.chat_text.formats import TOKENIZER_MARKS, any_of
from workers.schema.chat_text.tool_calls import CALL_MARKS
from workers.schema.patterns import TextPattern

_WORDS = (
    "touchstonesystem",
    "touchstoneasked",
    "touchstonesaid",
    "touchstoneaskedagain",
    "touchstonesaidagain",
)
_ROLES = ("system", "user", "assistant", "user", "assistant")
_RESULT = "touchstoneresult"
_REFUSALS = (TemplateError, TypeError, KeyError, IndexError, ValueError, AttributeError)
_EDGE = TextPattern(rf"\A\s*(?:(?:{any_of(TOKENIZER_MARKS)})\s*)*")


@dataclass(frozen=True, slots=True)
class _TemplateTexts:
    """What a folder's template makes of conversations of known words. texts: with a system message, and without.
    opening: what it writes after a user's last word where the agent is to answer. result: before a tool's result, if
    it shows one; resumed: between that and the agent's next words."""

    texts: list[str]
    opening: str
    result: str
    resumed: str
    template: str


def policy_format(name: str) -> ChatFormat:
    """Raises RewardError for a folder without a chat template, or with one that marks no turns."""
    if (known := named_format(name)) is not None:
        return known
    shown = _rendered_by(Path(name))
    return detect_format(shown.texts[0]) or _derived(name, shown)


def _rendered_by(folder: Path) -> _TemplateTexts:
    from transformers import AutoTokenizer

    if not folder.is_dir():
        raise RewardError(f"policy_template: there is no folder {folder} on this machine.")
    try:
        tokenizer: Any = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    except (OSError, ValueError) as error:
        raise RewardError(
            f"policy_template: {folder} has no tokenizer that can be loaded ({error})."
        ) from error
    messages = [{"role": role, "content": word} for role, word in zip(_ROLES, _WORDS, strict=True)]
    texts = [_rendered(tokenizer, messages), _rendered(tokenizer, messages[1:])]
    prompt = _rendered(tokenizer, messages[1:-1], add_generation_prompt=True)
    if not any(texts):
        raise RewardError(
            f"policy_template: the tokenizer of {folder} has no chat template for plain messages."
        )
    results = _rendered(tokenizer, [*messages[1:3], {"role": "tool", "content": _RESULT}, messages[4]])
    result, _, after = results.partition(_RESULT)
    return _TemplateTexts(
        [text for text in texts if text],
        opening=prompt.rpartition(_WORDS[3])[2],
        result=result.rpartition(_WORDS[2])[2] if after else "",
        resumed=after.partition(_WORDS[4])[0],
        template=str(tokenizer.chat_template),
    )


def _rendered(tokenizer: Any, messages: list[dict[str, str]], **options: Any) -> str:
    """Without a tokenizer's marks in front; empty where the template refuses."""
    try:
        text = str(tokenizer.apply_chat_template(messages, tokenize=False, **options))
    except _REFUSALS:
        return ""
    edge = _EDGE.match(text)
    return text if edge is None else text[edge.end() :]


def _derived(name: str, shown: _TemplateTexts) -> ChatFormat:
    """What stands between the words of each role begins the turn of the next one."""
    stretches = [stretch for text in shown.texts for stretch in _stretches(text)]
    closing = next((mark.strip() for before, mark, role in stretches if not role), "")
    found: dict[str, str] = {}
    for before, mark, role in stretches:
        if before and role:
            _add_mark(name, found, mark, role)
            if before == "assistant" and closing:
                _add_mark(name, found, mark.lstrip().removeprefix(closing), role)
    is_led = False
    for mark, role in [(mark, role) for before, mark, role in stretches if not before]:
        if not mark.strip() or any(_leads(mark, known) for known, whose in found.items() if whose == role):
            is_led = True  # the text of a system message without a mark, or the template's own
        else:
            _add_mark(name, found, mark, role)
    opening = shown.opening.rstrip()
    if opening.strip() and not any(
        opening.startswith(mark) for mark, role in found.items() if role == "assistant"
    ):
        _add_mark(name, found, opening, "assistant")
    if shown.result.strip().removeprefix(closing) and shown.result.rstrip() not in found:
        _add_mark(name, found, shown.result, "tool")
        if found.get(shown.resumed.rstrip(), "assistant") == "assistant":
            _add_mark(name, found, shown.resumed, "assistant")
    return _format(name, found, closing, is_led, shown.template)


def _format(name: str, found: dict[str, str], closing: str, is_led: bool, template: str) -> ChatFormat:
    marks = sorted(found, key=len, reverse=True)
    return ChatFormat(
        name="policy",
        header=TextPattern(rf"({any_of(tuple(marks))})\s*"),
        ends=(closing,) if closing else (),
        opens=tuple(marks),
        roles=MappingProxyType({mark.strip(): role for mark, role in found.items()}),
        leading=TextPattern(r"(?s)\A.*\S") if is_led else None,
        calls=tuple(reader for reader, mark in CALL_MARKS.items() if mark.search(template)),
        strips=True,
    )


def _stretches(text: str) -> list[tuple[str, str, str]]:
    """What stands between the words: whose word is before it, the stretch, and whose is after it; "" at the edges."""
    found, before, end = [], "", 0
    for word, role in zip(_WORDS, _ROLES, strict=True):
        if (place := text.find(word, end)) >= 0:
            found.append((before, text[end:place], role))
            before, end = role, place + len(word)
    return [*found, (before, text[end:], "")]


def _leads(mark: str, known: str) -> bool:
    """Whether a known mark stands after other text."""
    return mark.rstrip().endswith(known) and bool(mark.rstrip().removesuffix(known).strip())


def _add_mark(name: str, found: dict[str, str], mark: str, role: str) -> None:
    """Whitespace after it may be missing where a prompt ends. Raises RewardError for a mark of two roles."""
    mark = mark.rstrip()
    if not mark.strip() or found.setdefault(mark, role) != role:
        raise RewardError(
            f"policy_template: the chat template of {name} does not mark whose a turn is; name another "
            "template, or none."
        )
