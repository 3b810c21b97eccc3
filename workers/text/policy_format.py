"""The format of a policy's chat template, by the name of a family or by the folder of its tokenizer."""

from pathlib import Path
from types import MappingProxyType
from typing import Any

from jinja2 import TemplateError

from workers.errors import RewardError
from workers.schema.chat_text import ChatFormat, detect_format, named_format
from workers.schema.patterns import TextPattern, quote

_WORDS = (
    "touchstonesystem",
    "touchstoneasked",
    "touchstonesaid",
    "touchstoneaskedagain",
    "touchstonesaidagain",
)
_ROLES = ("system", "user", "assistant", "user", "assistant")
_REFUSALS = (TemplateError, TypeError, KeyError, IndexError, ValueError, AttributeError)


def policy_format(name: str) -> ChatFormat:
    """Raises RewardError for a folder without a chat template, or with one that marks no turns."""
    if (known := named_format(name)) is not None:
        return known
    texts = _rendered(Path(name))
    return detect_format(texts[0]) or _derived(name, texts)


def _rendered(folder: Path) -> list[str]:
    """A conversation of known words, with and without a system message, as the folder's template shows it."""
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
    texts = []
    for shown in (messages, messages[1:]):
        try:
            texts.append(str(tokenizer.apply_chat_template(shown, tokenize=False)))
        except _REFUSALS:
            continue
    if not texts:
        raise RewardError(
            f"policy_template: the tokenizer of {folder} has no chat template for plain messages."
        )
    return texts


def _derived(name: str, texts: list[str]) -> ChatFormat:
    """What stands between the words of each role begins the turn of the next one."""
    found: dict[str, str] = {}
    closing = ""
    for text in texts:
        end = 0
        for word, role in zip(_WORDS, _ROLES, strict=True):
            place = text.find(word)
            if place < 0:
                continue
            mark = text[end:place]
            if not mark.strip() or found.setdefault(mark, role) != role:
                raise RewardError(
                    f"policy_template: the chat template of {name} does not mark whose a turn is; name another "
                    "template, or none."
                )
            end = place + len(word)
        closing = text[end:].strip()
    marks = sorted(found, key=len, reverse=True)
    return ChatFormat(
        name="policy",
        header=TextPattern("(" + "|".join(map(quote, marks)) + ")"),
        ends=(closing,) if closing else (),
        roles=MappingProxyType({mark.strip().lower(): role for mark, role in found.items()}),
        strips=True,
    )
