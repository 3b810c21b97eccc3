"""How known chat templates mark turns. Each format is that of a family of models, by its own chat templates."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType

from workers.schema.patterns import PatternMatch, TextPattern, quote

# What tokenizers put around a conversation, whatever its template: begin, end and padding.
TOKENIZER_MARKS = (
    *(
        "<s>",
        "</s>",
        "<bos>",
        "<eos>",
        "<pad>",
        "<unk>",
        "[PAD]",
        "<PAD>",
        "<BOS>",
        "<EOS>",
        "[EOS]",
        "<|pad|>",
    ),
    *(
        "<|begin_of_text|>",
        "<|end_of_text|>",
        "<|endoftext|>",
        "<|startoftext|>",
        "<|endofprompt|>",
        "<|padding|>",
    ),
    *("<|finetune_right_pad_id|>", "<|vision_pad|>", "<|eod|>", "<BOS_TOKEN>", "<EOS_TOKEN>"),
    *("<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜▁pad▁｜>"),
)


def any_of(marks: tuple[str, ...]) -> str:
    """An expression."""
    return "|".join(map(quote, marks))


_TOKENIZERS = rf"(?:(?:{any_of(TOKENIZER_MARKS)})\s*)*"
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

    opens: literals that begin a header. begins: what the template writes before all turns. stops: marks of the next
    turn at which a policy stops. leading: what the text before the first turn, a user's, looks like where it is the
    system's. spoken: how plain text writes the same roles. calls: the readers of tool calls, by name.
    strips: the template trims or pads contents. continues: a reply has several turns of the agent's. no_system: system
    text stands in a user's turn.
    """

    name: str
    header: TextPattern
    ends: tuple[str, ...]
    opens: tuple[str, ...]
    roles: Mapping[str, str] = field(default_factory=lambda: _USUAL)
    begins: tuple[str, ...] = ()
    stops: tuple[str, ...] = ()
    leading: TextPattern | None = None
    spoken: TextPattern | None = None
    calls: tuple[str, ...] = ()
    strips: bool = False
    continues: bool = False
    no_system: bool = False

    def role(self, header: PatternMatch) -> str | None:
        """Of a chat message, `tools` or `between`; None where the header names no role, or says more than a role."""
        if self.continues:
            return _harmony_role(header)
        written = header[1].strip()
        return self.roles.get(written) or self.roles.get(written.lower())

    @cached_property
    def edge(self) -> TextPattern:
        """What may stand before the first turn. The ends of turns are there where a tokenizer pads with them."""
        return TextPattern(rf"\A\s*(?:(?:{any_of((*TOKENIZER_MARKS, *self.begins, *self.ends))})\s*)*")

    @cached_property
    def closing(self) -> TextPattern:
        """What closes a turn: the template's own marks, then those of a tokenizer."""
        return TextPattern(
            rf"((?:(?:{any_of(self.ends)})\s*)*){_TOKENIZERS}\z" if self.ends else rf"(){_TOKENIZERS}\z"
        )

    @cached_property
    def stopping(self) -> TextPattern:
        """Marks of the next turn at the end of a policy's text, and what may follow them."""
        return TextPattern(rf"(?:{any_of(self.stops)})\s*{_TOKENIZERS}\z")

    @cached_property
    def marks(self) -> TextPattern:
        """Marks that are no content where a template writes them."""
        return TextPattern(any_of((*self.opens, *self.ends)))


def _harmony_role(header: PatternMatch) -> str | None:
    """Whose a turn of Harmony is. A recipient is named once, and only by an agent; a result goes back to the agent."""
    role, name, to, _, addressed = header.groups()
    if role == "assistant":
        return None if name or (to and addressed) else "assistant"
    if role == "tool":
        return None if to or addressed else "tool"
    if to == "assistant" and not name and not addressed:
        return "tool"  # functions.look_up to=assistant
    return None if name or to or addressed else _USUAL.get(role)


_LINE = r"(?:\r?\n|\z)"  # ends the line of a header, or the prompt does
FORMATS: Mapping[str, ChatFormat] = {
    made.name: made
    for made in (
        ChatFormat(
            "phi4",
            TextPattern(r"<\|im_start\|>([a-z]+)<\|im_sep\|>(?:\r?\n)?"),
            ("<|im_end|>", "<|endoftext|>"),
            ("<|im_start|>", "<|im_sep|>"),
        ),
        ChatFormat(
            "idefics",
            TextPattern(
                rf"(?:\A\s*{_TOKENIZERS}|<end_of_utterance>\s*|<\|im_start\|>)(System|User|Assistant|Tool):[ ]?"
            ),
            ("<end_of_utterance>", "</s>"),
            ("<|im_start|>",),
            spoken=TextPattern(r"(?m)^[ \t]*(?:System|User|Assistant|Tool):"),
            strips=True,
        ),
        ChatFormat(
            "chatml",
            TextPattern(rf"<\|im_start\|>([a-z]+){_LINE}"),
            ("<|im_end|>", "<|endoftext|>"),
            ("<|im_start|>",),
            calls=("tagged", "python"),
        ),
        ChatFormat(
            "llama3",
            TextPattern(
                r"<\|(?:start_header_id|header_start)\|>([a-z]+)<\|(?:end_header_id|header_end)\|>(?:\r?\n\r?\n)?"
            ),
            ("<|eot_id|>", "<|eom_id|>", "<|end_of_text|>", "<|eot|>", "<|eom|>"),
            ("<|start_header_id|>", "<|end_header_id|>", "<|header_start|>", "<|header_end|>"),
            calls=("bare",),
            strips=True,
        ),
        ChatFormat(
            "gemma",
            TextPattern(rf"<start_of_turn>([a-z]+){_LINE}"),
            ("<end_of_turn>", "<eos>"),
            ("<start_of_turn>",),
            strips=True,
            no_system=True,
        ),
        ChatFormat(
            "gemma4",
            TextPattern(rf"(<\|turn>[a-z]+{_LINE}|<\|tool_response>|<tool_response\|>)"),
            ("<turn|>", "<eos>"),
            ("<|turn>", "<|tool_response>", "<tool_response|>"),
            MappingProxyType(
                {f"<|turn>{name}": role for name, role in _USUAL.items()}
                | {"<|tool_response>": "tool", "<tool_response|>": "assistant"}
            ),
            calls=("gemma",),
            strips=True,
        ),
        ChatFormat(
            "harmony",
            TextPattern(
                r"<\|start\|>([a-zA-Z_][^\s<|]*)(?: ([^\s<|=]+))?(?: to=([^\s<|]+))?"
                r"(?:<\|channel\|>(analysis|commentary|final)(?: to=([^\s<|]+))?(?: json)?)?"
                r"(?: ?<\|constrain\|> ?json)?\s*(?:<\|message\|>|\z)"
            ),
            ("<|end|>", "<|return|>", "<|call|>", "<|eot|>", "<|eom|>", "<|endoftext|>"),
            ("<|start|>", "<|channel|>", "<|message|>"),
            calls=("invoked",),
            continues=True,
        ),
        ChatFormat(
            "cohere",
            TextPattern(r"<\|START_OF_TURN_TOKEN\|><\|([A-Z]+)_TOKEN\|>"),
            ("<|END_OF_TURN_TOKEN|>", "<EOS_TOKEN>"),
            ("<|START_OF_TURN_TOKEN|>",),
            MappingProxyType({"system": "system", "user": "user", "chatbot": "assistant"}),
            strips=True,
        ),
        ChatFormat(
            "deepseek",
            TextPattern(r"<｜(User|Assistant|System|tool▁outputs?▁(?:begin|end))｜>"),
            ("<｜end▁of▁sentence｜>", "<|EOT|>"),
            (
                *(
                    "<｜User｜>",
                    "<｜Assistant｜>",
                    "<｜System｜>",
                    "<｜tool▁outputs▁begin｜>",
                    "<｜tool▁outputs▁end｜>",
                ),
                *("<｜tool▁output▁begin｜>", "<｜tool▁output▁end｜>"),
            ),
            MappingProxyType(
                {
                    "user": "user",
                    "assistant": "assistant",
                    "system": "system",
                    "tool▁outputs▁begin": "between",
                    "tool▁output▁begin": "tool",
                    "tool▁output▁end": "assistant",
                    "tool▁outputs▁end": "assistant",
                }
            ),
            leading=TextPattern(r"\A\s*(?:<｜begin▁of▁sentence｜>|<\|begin_of_text\|>|<s>|<bos>)"),
            calls=("deepseek",),
        ),
        ChatFormat(
            "mistral",
            TextPattern(r"\[(/?(?:INST|SYSTEM_PROMPT|TOOL_RESULTS|AVAILABLE_TOOLS))\]"),
            ("</s>", "<|endoftext|>"),
            tuple(
                f"[{slash}{name}]"
                for name in ("INST", "SYSTEM_PROMPT", "TOOL_RESULTS", "AVAILABLE_TOOLS")
                for slash in ("", "/")
            ),
            MappingProxyType(
                {
                    "INST": "user",
                    "/INST": "assistant",
                    "SYSTEM_PROMPT": "system",
                    "/SYSTEM_PROMPT": "between",
                    "TOOL_RESULTS": "tool",
                    "/TOOL_RESULTS": "assistant",
                    "AVAILABLE_TOOLS": "tools",
                    "/AVAILABLE_TOOLS": "between",
                }
            ),
            leading=TextPattern(r"(?s)\A\s*(?:<s>\s*)?<<SYS>>.*<</SYS>>\s*\z"),
            calls=("mistral",),
            strips=True,
            no_system=True,
        ),
        ChatFormat(
            "barred",  # Phi-3, GLM, Zephyr, Granite-like: <|user|>
            TextPattern(r"<\|(system|user|assistant|observation|tool)\|>(?:\r?\n)?"),
            ("<|end|>", "</s>", "<|endoftext|>", "<|im_end|>"),
            ("<|system|>", "<|user|>", "<|assistant|>", "<|observation|>", "<|tool|>"),
            begins=("[gMASK]", "<sop>"),
            stops=("<|user|>", "<|observation|>"),
            calls=("tagged",),
        ),
    )
}
# The names of models by whose templates people know a format.
ALIASES: Mapping[str, str] = {
    "qwen": "chatml", "qwen2": "chatml", "qwen2.5": "chatml", "qwen3": "chatml", "nemotron": "chatml",
    "lfm2": "chatml", "hermes": "chatml", "llama-3": "llama3", "llama-2": "mistral", "llama2": "mistral",
    "gemma2": "gemma", "gemma3": "gemma", "gpt-oss": "harmony", "muse": "harmony", "command-r": "cohere",
    "deepseek-v3": "deepseek", "deepseek-r1": "deepseek", "phi3": "barred", "phi": "barred", "glm": "barred",
    "llama4": "llama3", "zephyr": "barred", "smolvlm": "idefics",
}  # fmt: skip


def named_format(name: str) -> ChatFormat | None:
    return FORMATS.get(ALIASES.get(name.lower(), name.lower()))
