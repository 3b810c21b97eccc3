"""How known chat templates mark turns. Each format is that of a family of models, by its own chat templates."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from workers.schema.patterns import TextPattern, quote

# What tokenizers put around a conversation: nothing of it is content there.
EDGE_MARKS = (
    *("<s>", "</s>", "<bos>", "<eos>", "<pad>", "<unk>", "[PAD]", "<PAD>", "<BOS>", "<EOS>", "<|pad|>"),
    *("<|begin_of_text|>", "<|end_of_text|>", "<|endoftext|>", "<|startoftext|>", "<|endofprompt|>"),
    *(
        "<|finetune_right_pad_id|>",
        "<|vision_pad|>",
        "<|im_end|>",
        "<|eot_id|>",
        "<|eom_id|>",
        "<end_of_turn>",
    ),
    *("<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜▁pad▁｜>", "<|end|>", "<|return|>", "<|call|>"),
    *("<BOS_TOKEN>", "<EOS_TOKEN>", "<|END_OF_TURN_TOKEN|>", "[gMASK]", "<sop>", "<|eot|>", "<|eom|>"),
    *("<turn|>", "<end_of_utterance>", "<|END_RESPONSE|>", "<|im_sep|>", "<|padding|>", "[EOS]", "<|eod|>"),
)
_EDGE = "|".join(map(quote, EDGE_MARKS))
LEADING_MARKS = TextPattern(rf"\A\s*(?:(?:{_EDGE})\s*)+")
TRAILING_MARKS = TextPattern(rf"(?:(?:{_EDGE})\s*)+\z")
_USUAL = MappingProxyType(
    {
        "system": "system",
        "developer": "system",
        "user": "user",
        "human": "user",
        "assistant": "assistant",
        "model": "assistant",
        "tool": "tool",
        "ipython": "tool",
        "observation": "tool",
        "function": "tool",
        "environment": "tool",
    }
)


@dataclass(frozen=True)
class ChatFormat:
    """header: begins a turn; its group 1 is the role as the template writes it, by `roles`. ends: what closes one.

    leading: whose the text before the first turn is, where the template writes some. strips: the template trims or
    pads contents. continues: a reply has several turns of the agent's. no_system: system text stands in a user's turn.
    """

    name: str
    header: TextPattern
    ends: tuple[str, ...]
    roles: Mapping[str, str] = field(default_factory=lambda: _USUAL)
    leading: str | None = None
    strips: bool = False
    continues: bool = False
    no_system: bool = False

    def role(self, written: str) -> str | None:
        name = written.strip().lower()
        return self.roles.get(name) or self.roles.get(name.split(" ")[0])


FORMATS: Mapping[str, ChatFormat] = {
    made.name: made
    for made in (
        ChatFormat(
            "phi4",
            TextPattern(r"<\|im_start\|>([a-z]+)<\|im_sep\|>\n?"),
            ("<|im_end|>", "<|endoftext|>"),
        ),
        ChatFormat(
            "idefics",
            TextPattern(
                r"(?:\A|<end_of_utterance>\n?|<\|im_start\|>|<\|begin_of_text\|>|<s>)(System|User|Assistant|Tool):[ ]?"
            ),
            ("<end_of_utterance>", "</s>"),
            strips=True,
        ),
        ChatFormat(
            "chatml",
            TextPattern(r"<\|im_start\|>([a-z]+)(?:\n|\z)"),
            ("<|im_end|>", "<|endoftext|>"),
        ),
        ChatFormat(
            "llama3",
            TextPattern(r"<\|start_header_id\|>([a-z]+)<\|end_header_id\|>(?:\n\n)?"),
            ("<|eot_id|>", "<|eom_id|>", "<|end_of_text|>"),
            strips=True,
        ),
        ChatFormat(
            "gemma",
            TextPattern(r"<start_of_turn>([a-z]+)(?:\n|\z)"),
            ("<end_of_turn>", "<eos>"),
            strips=True,
            no_system=True,
        ),
        ChatFormat(
            "gemma4",
            TextPattern(r"<\|turn>([a-z]+)(?:\n|\z)|(<\|tool_response>)|(<tool_response\|>)"),
            ("<turn|>", "<eos>"),
            strips=True,
        ),
        ChatFormat(
            "harmony",
            TextPattern(
                r"<\|start\|>([a-zA-Z_][^<|]*)(?:<\|channel\|>([^<]*))?(?:<\|constrain\|>[^<]*)?(?:<\|message\|>|\z)"
            ),
            ("<|end|>", "<|return|>", "<|call|>", "<|eot|>", "<|eom|>", "<|endoftext|>"),
            continues=True,
        ),
        ChatFormat(
            "cohere",
            TextPattern(r"<\|START_OF_TURN_TOKEN\|><\|([A-Z]+)_TOKEN\|>"),
            ("<|END_OF_TURN_TOKEN|>", "<EOS_TOKEN>"),
            MappingProxyType({"system": "system", "user": "user", "chatbot": "assistant"}),
            strips=True,
        ),
        ChatFormat(
            "deepseek",
            TextPattern(r"<｜(User|Assistant|tool▁outputs▁begin|tool▁outputs▁end|System)｜>"),
            ("<｜end▁of▁sentence｜>", "<|EOT|>"),
            MappingProxyType(
                {
                    "user": "user",
                    "assistant": "assistant",
                    "system": "system",
                    "tool▁outputs▁begin": "tool",
                    "tool▁outputs▁end": "assistant",
                }
            ),
            leading="system",
        ),
        ChatFormat(
            "mistral",
            TextPattern(r"\[(/?(?:INST|SYSTEM_PROMPT|TOOL_RESULTS|AVAILABLE_TOOLS))\]"),
            ("</s>", "<|endoftext|>"),
            MappingProxyType(
                {
                    "inst": "user",
                    "/inst": "assistant",
                    "system_prompt": "system",
                    "/system_prompt": "between",
                    "tool_results": "tool",
                    "/tool_results": "assistant",
                    "available_tools": "tools",
                    "/available_tools": "between",
                }
            ),
            leading="system",
            strips=True,
            no_system=True,
        ),
        ChatFormat(
            "barred",  # Phi-3, GLM, Zephyr, Granite-like: <|user|>
            TextPattern(r"<\|(system|user|assistant|observation|tool)\|>\n?"),
            ("<|end|>", "</s>", "<|endoftext|>", "<|im_end|>"),
        ),
    )
}
# The names of models by whose templates people know a format.
ALIASES: Mapping[str, str] = {
    "qwen": "chatml", "qwen2": "chatml", "qwen2.5": "chatml", "qwen3": "chatml", "nemotron": "chatml",
    "lfm2": "chatml", "hermes": "chatml", "llama-3": "llama3", "llama-2": "mistral", "llama2": "mistral",
    "gemma2": "gemma", "gemma3": "gemma", "gpt-oss": "harmony", "muse": "harmony", "command-r": "cohere",
    "deepseek-v3": "deepseek", "deepseek-r1": "deepseek", "phi3": "barred", "phi": "barred", "glm": "barred",
    "zephyr": "barred", "smolvlm": "idefics",
}  # fmt: skip


def named_format(name: str) -> ChatFormat | None:
    return FORMATS.get(ALIASES.get(name.lower(), name.lower()))


def detect_format(text: str) -> ChatFormat | None:
    """The format of a rendered conversation: one that begins with a turn, or ends with the agent's open one.

    Text that only mentions marks is not rendered.
    """
    if "<" not in text and "[" not in text and ":" not in text:
        return None
    begins = LEADING_MARKS.match(text)
    start = begins.end() if begins else 0
    for format_ in FORMATS.values():
        headers = list(format_.header.finditer(text))
        if not headers:
            continue
        first, last = headers[0], headers[-1]
        at_start = first.start() <= start or (begins is None and not text[: first.start()].strip())
        opened = format_.role(last[1] or "") == "assistant" and len(text) - last.end() <= _OPENED
        led = format_.leading is not None and ("｜" in first[0] or text.startswith("<<SYS>>", start))
        if (at_start or opened or led) and (format_.name != "idefics" or "<end_of_utterance>" in text):
            return format_
    return None


def mentions_marks(text: str) -> bool:
    """Whether a text has marks that begin a turn, in any format."""
    return any(hint in text for hint in _HINTS) and any(
        format_.header.search(text) is not None for name, format_ in FORMATS.items() if name != "idefics"
    )


_HINTS = ("<|", "<｜", "<start_of_turn>", "[INST]", "[/INST]", "TOOL_RESULTS]", "SYSTEM_PROMPT]")
_OPENED = 32  # characters that a template may write after the header of the agent's turn: "<think>\n"
