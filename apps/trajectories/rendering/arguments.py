"""Arguments of a tool call, each as what it is: code in its language, a diff, JSON."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.safestring import SafeString

from apps.trajectories.rendering.code import code_html, language_of
from apps.trajectories.rendering.edits import edit_names, line_diff
from apps.trajectories.rendering.safe import escape
from apps.trajectories.rendering.text import output_html
from apps.trajectories.rendering.trees import json_html, pretty
from apps.trajectories.rendering.truncation import shown_length

_LONG = 100  # characters of a string beyond which it stands below its name
_LANGUAGES = {  # by the last word of a name
    "bash": ("bash", "shell", "cmd", "command", "keystrokes"),
    "python": ("python", "ipython", "py", "code", "cell"),
    "diff": ("patch", "diff"),
    "sql": ("sql",),
}
_PATHS = ("path", "file_path", "file", "filename", "file_name")


@dataclass(frozen=True, slots=True)
class Argument:
    """name: empty where the arguments are one text. hidden: characters that are not shown. is_block: it stands below
    its name."""

    name: str
    text: str
    html: SafeString
    hidden: int = 0
    is_block: bool = False


def arguments_of(tool: str, arguments: Any, most: int | None) -> list[Argument]:
    """tool: its name, which tells what a text without a name is (`bash`, `python`). most: characters of each that are
    shown; all without."""
    if not isinstance(arguments, Mapping):
        return [_argument(tool, "", arguments, {}, most)] if arguments else []
    edit = edit_names(arguments)
    out = []
    for name, value in arguments.items():
        if edit is not None and name in edit:
            if name == edit[0]:
                out.append(_edit(arguments, edit, most))
        elif isinstance(value, list) and value and all(_is_edit(each) for each in value):
            out += [argument for each in value for argument in arguments_of(tool, each, most)]
        else:
            out.append(_argument(tool, name, value, arguments, most))
    return out


def _is_edit(value: Any) -> bool:
    return isinstance(value, dict) and edit_names(value) is not None


def _edit(arguments: Mapping[str, Any], names: tuple[str, str], most: int | None) -> Argument:
    whole = line_diff(*(arguments[name] for name in names))
    text = whole[: shown_length(whole, most)]
    html = code_html(text, "diff")
    return Argument(" → ".join(names), text, html, len(whole) - len(text), is_block=True)


def _argument(tool: str, name: str, value: Any, siblings: Mapping[str, Any], most: int | None) -> Argument:
    whole = value if isinstance(value, str) else pretty(value)
    text = whole[: shown_length(whole, most)]
    hidden = len(whole) - len(text)
    is_block = not name or "\n" in text or len(text) > _LONG
    if isinstance(value, str):
        html = _string(tool, name, text, siblings)
    elif isinstance(value, dict | list) and value and not hidden:
        html = json_html(value)
    else:
        html = code_html(text, "json")
    return Argument(name, text, html, hidden, is_block)


def _string(tool: str, name: str, value: str, siblings: Mapping[str, Any]) -> SafeString:
    for hint in (name.lower(), tool.lower()):
        for language, words in _LANGUAGES.items():
            if hint.rpartition("_")[2] in words:
                return code_html(value, language)
    path = next((siblings[key] for key in _PATHS if isinstance(siblings.get(key), str)), "")
    if path and name not in _PATHS and "\n" in value and (language := language_of(path)):
        return code_html(value, language)
    return output_html(value) if "\n" in value else escape(value)
