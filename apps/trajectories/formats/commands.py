"""Agents that write a command into a block of their message."""

from workers.schema import ToolCall
from workers.schema.patterns import TextPattern

_BLOCK = TextPattern(r"(?s)```(?:mswea_bash_command|bash|sh)?[ \t]*\r?\n(.*?)\n?```")


def parted(text: str) -> tuple[str, ToolCall | None]:
    """The text around the single command of a message, and the call; the full text if there is not exactly one."""
    found = list(_BLOCK.finditer(text))
    if len(found) != 1:
        return text, None
    (block,) = found
    text = "\n\n".join(part for part in (text[: block.start()].strip(), text[block.end() :].strip()) if part)
    return text, shell(block[1])


def shell(command: str) -> ToolCall:
    return ToolCall(name="bash", arguments={"command": command})
