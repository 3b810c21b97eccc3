"""Reference pages that are made from the code: commands, recipe keys, JSON Schemas."""

import argparse
import json
from collections.abc import Callable
from pathlib import Path


def commands() -> str:
    """Every command of this project by group, with its arguments, from the parsers that read them."""
    from django.core.management import get_commands, load_command_class

    groups: dict[str, list[str]] = {}
    for name, app in sorted(get_commands().items()):
        if not app.startswith("apps."):
            continue
        command = load_command_class(app, name)
        parser = command.create_parser("manage.py", name)
        groups.setdefault(app.removeprefix("apps."), []).append(_command(name, command.help, parser))
    text = [
        "# Commands",
        "",
        "Each command is `manage.py NAME` in a checkout and `touchstone NAME` where the package is installed. All take "
        "`--json` and `--help`; what a command changes, a page and the JSON API can change too.",
        "",
    ]
    for group, entries in groups.items():
        text += [f"## Commands of {group.replace('_', ' ')}", "", *entries]
    return "\n".join(text)


# Arguments that Django gives to every command, and that its own documentation describes.
_EVERYWHERE = frozenset(
    (
        "help",
        "version",
        "verbosity",
        "settings",
        "pythonpath",
        "traceback",
        "no_color",
        "force_color",
        "skip_checks",
    )
)


def _command(name: str, purpose: str, parser: argparse.ArgumentParser) -> str:
    lines = [f"### {name}", "", purpose, ""]
    actions = [action for action in parser._actions if action.dest not in _EVERYWHERE]
    if subparsers := next((a for a in actions if isinstance(a, argparse._SubParsersAction)), None):
        lines += [f"- `{name} {sub}`" for sub in subparsers.choices] + [""]
        actions.remove(subparsers)
    if actions:
        lines += ["| argument | meaning |", "|---|---|"]
        lines += [f"| {_written(action)} | {_cell(_meaning(action, parser))} |" for action in actions]
    return "\n".join([*lines, ""])


def _written(action: argparse.Action) -> str:
    value = "" if action.nargs == 0 else str(action.metavar or (_choices(action) or action.dest.upper()))
    names = ", ".join(f"`{name}{f' {value}' if value else ''}`" for name in action.option_strings)
    return _cell(names or f"`{value}`")


def _choices(action: argparse.Action) -> str:
    listed = [str(choice) for choice in action.choices or ()]
    return "|".join(listed) if len(listed) <= 6 else ""


def _meaning(action: argparse.Action, parser: argparse.ArgumentParser) -> str:
    meaning = parser._get_formatter()._expand_help(action) if action.help else ""
    listed = [str(choice) for choice in action.choices or ()]
    return f"{meaning} One of {', '.join(listed)}." if len(listed) > 6 else meaning


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")


def recipes() -> str:
    """Every key of a recipe with its default and what it is for."""
    from apps.training.recipe_fields import GROUPS
    from workers.schema.recipe import Recipe
    from workers.schema.recipe_help import PURPOSES

    lines = [
        "# Recipe keys",
        "",
        "A recipe is a TOML file (`m train PROJECT --dataset NAME --recipe FILE`) or the form of a training run. What "
        "is not given has the default. How to choose is in [Datasets, training and reports](researchers.md).",
        "",
    ]
    for title, keys in GROUPS.items():
        lines += [f"## {title}", "", "| key | default | what it is for |", "|---|---|---|"]
        for key in keys:
            default = _cell(f"`{_toml(getattr(Recipe(), key))}`")
            lines.append(f"| `{key}` | {default} | {_cell(PURPOSES.get(key, ''))} |")
        lines.append("")
    return "\n".join([*lines, ""])


def _toml(value: object) -> str:
    if isinstance(value, tuple | frozenset | set):
        value = list(value)
    return json.dumps(value, default=str)


def schemas() -> str:
    """The JSON Schemas of docs/schemas with what each describes."""
    lines = [
        "# JSON Schemas",
        "",
        "Of what is sent to the reward API and of records in feedback files. They are made from the code that reads "
        "them. The calls of the JSON API are described by the installation at `/api/v1/docs`.",
        "",
        "| schema | describes |",
        "|---|---|",
    ]
    for path in sorted((Path(__file__).parents[1] / "schemas").glob("*.json")):
        described = json.loads(path.read_text())
        about = described.get("description", described.get("title", ""))
        lines.append(f"| [{path.name}](schemas/{path.name}) | {_cell(about)} |")
    return "\n".join([*lines, ""])


GENERATED: dict[str, Callable[[], str]] = {"commands": commands, "recipes": recipes, "schemas": schemas}
