"""What Markdown names next to its code blocks: settings and environment variables, links, commands in code spans.

Each function yields what is wrong, in words. Addresses of other sites are not requested.
"""

import re
import shlex
from argparse import ArgumentParser
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from docs.site.page_tree import blocks, parse
from tests.snippets import ROOT, is_shell, pip_faults

_CODE = ("apps", "workers", "client", "benchmarks", "docs/operations", "docs/examples", ".ci")
_VARIABLE = re.compile(r"\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b")
_OURS = re.compile(r"\bTOUCHSTONE_[A-Z0-9_]*[A-Z0-9]\b(?!\*)")
_SPAN = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
_CALL = re.compile(r"(?:\S*python3? )?(?:\S*/)?(m|manage\.py|touchstone) ([a-z][a-z_-]+)\b(.*)")
_INSTALL = re.compile(r"(?:\S*python3? -m )?pip install (.+)")
_LINK = re.compile(r"(?<!\\)\[(?:[^\[\]]|\[[^\[\]]*\])*\]\(([^()\s]+)\)")
# Variables of others that pages name and no code of ours does; the last two are of an example's shell.
OTHERS = frozenset(
    (
        "MLFLOW_ALLOW_FILE_STORE",
        "NCCL_SOCKET_IFNAME",
        "OTEL_EXPORTER_OTLP_ENDPOINT",
        "OTEL_EXPORTER_OTLP_HEADERS",
        "PIP_FIND_LINKS",
        "TORCH_DISABLE_SHARE_RDZV_TCP_STORE",
        "ADMIN_KEY",
        "PHOENIX_HOST",
    )
)


def markdown_files() -> list[str]:
    """For people: the pages, and the files at the root and next to what they are about."""
    paths = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    more = (
        "client/README.md",
        "requirements/README.md",
        "static/vendor/README.md",
        "tests/contracts/README.md",
    )
    return sorted({*(str(path.relative_to(ROOT)) for path in paths), *more})


def variable_faults(markdown: str) -> Iterator[str]:
    """Settings of ours anywhere, and other environment variables in code spans and shell blocks."""
    for name in sorted(set(_OURS.findall(markdown))):
        if name.removesuffix("_FILE") not in _quoted_names():
            yield f"There is no setting {name}: no code reads it."
    named: set[str] = set()
    for is_code, text in blocks(markdown):
        lines = text.splitlines()
        if not is_code:
            spans = (span.partition("=")[0].strip("$") for span in _SPAN.findall(text))
            named |= {span for span in spans if _VARIABLE.fullmatch(span)}
        elif lines[0].strip("` ") in ("sh", "bash", "console") or is_shell("\n".join(lines[1:-1])):
            named |= set(_VARIABLE.findall(text))
    for name in sorted(named - OTHERS - _names_in_code()):
        if not name.startswith("TOUCHSTONE_") and name.removesuffix("_FILE") not in _names_in_code():
            yield f"No code has the variable {name}; correct it, or add it to OTHERS in tests/page_names.py."


def link_faults(page: str, markdown: str) -> Iterator[str]:
    """page: relative to the repository. Files and headings that links lead to and that are not there."""
    prose = "".join(text for is_code, text in blocks(markdown) if not is_code)
    for link in _LINK.findall(re.sub(r"`[^`]*`", "", prose)):
        if "://" in link or link.startswith("mailto:"):
            continue
        path, _, anchor = link.partition("#")
        target = (ROOT / page).parent / path if path else ROOT / page
        if not target.exists():
            yield f"{page} links to {link}, which is not there."
        elif (
            anchor
            and target.suffix == ".md"
            and anchor not in _anchors(target, markdown if not path else None)
        ):
            yield f"{page} links to {link}: no heading has this anchor."


def command_faults(markdown: str) -> Iterator[str]:
    """Options of our commands, and packages of `pip install`, in code spans of prose."""
    for is_code, text in blocks(markdown):
        for span in [] if is_code else _SPAN.findall(text):
            if call := _CALL.fullmatch(span):
                yield from _option_faults(call[1], call[2], call[3])
            elif install := _INSTALL.fullmatch(span):
                yield from pip_faults(["install", *shlex.split(install[1])])


def _option_faults(program: str, name: str, rest: str) -> Iterator[str]:
    parser = _parser(program, name)
    if parser is None:  # tests.snippets.inline_faults names commands that are not there
        return
    known = set(_options(parser))
    try:
        words = shlex.split(rest)
    except ValueError:
        return
    for word in words:
        option = word.lstrip("[").rstrip("],").partition("=")[0]
        if re.fullmatch(r"--[a-z][a-z-]*", option) and option not in known:
            yield f"`{program} {name}` has no option {option}."


@cache
def _parser(program: str, name: str) -> ArgumentParser | None:
    from django.core.management import get_commands, load_command_class
    from touchstone_client.cli.own import COMMANDS

    if program == "touchstone" and name in COMMANDS:
        return COMMANDS[name].parser()
    app = get_commands().get(name, "")
    if not isinstance(app, str) or not app.startswith("apps."):
        return None
    return load_command_class(app, name).create_parser("manage.py", name)


def _options(parser: ArgumentParser) -> Iterator[str]:
    for action in parser._actions:
        yield from action.option_strings
        if isinstance(action.choices, dict):  # of subcommands
            for sub in action.choices.values():
                yield from _options(sub)


@cache
def _anchors(path: Path, markdown: str | None = None) -> frozenset[str]:
    return frozenset(parse(path.read_text() if markdown is None else markdown).anchors())


@cache
def _code() -> str:
    endings = (".py", ".toml", ".yaml", ".yml", ".env", ".sh", ".service", ".txt", "")
    files = (path for folder in _CODE for path in (ROOT / folder).rglob("*") if path.suffix in endings)
    texts = [
        path.read_text(errors="replace") for path in files if path.is_file() and "static" not in path.parts
    ]
    return "\n".join([*texts, (ROOT / "Makefile").read_text()])


@cache
def _names_in_code() -> frozenset[str]:
    return frozenset(_VARIABLE.findall(_code()))


@cache
def _quoted_names() -> frozenset[str]:
    """Settings that `env_...` functions, the client and the tests read: each is a string of its code."""
    tests = "".join(path.read_text() for path in (ROOT / "tests").rglob("*.py"))
    read_by_tests = re.findall(r"environ(?:\.get\(|\[)\"(TOUCHSTONE_[A-Z0-9_]+)\"", tests)
    return frozenset([*re.findall(r"[\"'](TOUCHSTONE_[A-Z0-9_]+)[\"']", _code()), *read_by_tests])
