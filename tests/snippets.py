"""Code blocks of the documentation, and what each line of them must be: a command with its options, a package, a path.

`faults_in` names what is wrong with a block without running it: a command that is not there, an option that its parser
does not know, a setting, package, module, name or address that does not exist, TOML or JSON that our readers refuse.
"""

import argparse
import ast
import importlib
import importlib.util
import json
import re
import shlex
import textwrap
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from touchstone_client.errors import MissingExtra

from docs.site.page_tree import blocks
from workers.errors import RewardError

ROOT = Path(__file__).parents[1]
# Programs of others that the pages show; what is not here and not ours is a mistake.
PROGRAMS = frozenset(
    (
        *(
            "alias",
            "cd",
            "cp",
            "cut",
            "date",
            "docker",
            "export",
            "git",
            "helm",
            "jq",
            "kubectl",
            "llamafactory-cli",
            "mkdir",
            "openssl",
        ),
        *(
            "sbatch",
            "squeue",
            "sinfo",
            "scancel",
            "source",
            "split",
            "ssh",
            "systemctl",
            "tensorboard",
            "torchrun",
            "vf-eval",
            "vllm",
        ),
        *(
            ".",
            "ray",
            "trl/bin/activate",
            "sudo",
            "useradd",
            "sed",
            "echo",
            "cat",
            "psql",
            "install",
            "journalctl",
        ),
    )
)
# Modules that are run by `python -m` and are not in this environment.
PEER_MODULES = frozenset(
    ("openrlhf.cli.train_ppo_ray", "sglang.launch_server", "venv", "verl.trainer.main_ppo", "vllm")
)
_MANAGE = re.compile(r"^(?:\S*python3? )?(?:\S*/)?manage\.py (?! )")
_ASSIGNMENT = re.compile(r"^([A-Za-z_][A-Za-z0-9_]*)=")


@dataclass(frozen=True)
class Snippet:
    page: str
    number: int
    language: str
    code: str

    def __str__(self) -> str:
        return f"{self.page}-{self.number}"


def documents() -> list[str]:
    """The pages, relative to the repository."""
    paths = [ROOT / "README.md", ROOT / "client/README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [str(path.relative_to(ROOT)) for path in paths]


def snippets() -> Iterator[Snippet]:
    for page in documents():
        number = 0
        for is_code, text in blocks((ROOT / page).read_text()):
            if not is_code:
                continue
            number += 1
            lines = text.splitlines()
            yield Snippet(page, number, lines[0].strip().strip("`"), "\n".join(lines[1:-1]))


def inline_faults(text: str) -> Iterator[str]:
    """Commands in code spans of prose that are not there."""
    from touchstone_client.cli.own import COMMANDS

    for program, name in re.findall(r"`(m|manage\.py|touchstone|make) ([a-z][a-z_-]+)[ `]", text):
        known = _targets() if program == "make" else {*_commands(), "help"}
        foreign = {
            *COMMANDS,
            "manage",
            "sync",
            "tools",
        }  # the last two are an example of another distribution
        if name not in (known | foreign if program == "touchstone" else known):
            yield f"`{program} {name}`: there is no {name}."


def faults_in(snippet: Snippet) -> list[str]:
    """What is wrong, in words; [] where nothing is."""
    if snippet.language == "python":
        return list(_python_faults(snippet.code))
    if snippet.language == "toml":
        return list(_toml_faults(snippet.code))
    if snippet.language == "json":
        return list(_json_faults(snippet.code))
    if snippet.language in ("sh", "bash", "console"):
        return list(_shell_faults(snippet.code))
    if snippet.language == "":
        return list(_shell_faults(snippet.code)) if is_shell(snippet.code) else []
    return []


def is_shell(code: str) -> bool:
    """Whether a block without a language is commands rather than a listing: its first line, or the first after values
    of variables, runs something."""
    for line in _lines(code):
        words = line.removeprefix("$ ").split()
        while words and _ASSIGNMENT.match(words[0]):
            words.pop(0)
        if words:
            return (
                bool(_MANAGE.match(line[line.index(words[0]) :]))
                or words[0].rpartition("/")[2]
                in {"m", "make", "pip", "curl", "touchstone", "python", "python3"}
                or words[0] in PROGRAMS
                or (words[0].startswith("docs/") and (ROOT / words[0]).is_file())
            )
    return False


def _lines(code: str) -> Iterator[str]:
    """Logical lines without comments: those ended by a backslash joined, quotes over several lines kept together."""
    whole = ""
    for line in code.splitlines():
        whole += line
        if whole.endswith("\\"):
            whole = whole[:-1] + " "
            continue
        try:
            words = shlex.split(whole, comments=True)
        except ValueError:  # a quote that is not closed yet
            whole += "\n"
            continue
        if words:
            yield _without_comment(whole).strip()
        whole = ""


def _without_comment(line: str) -> str:
    quoted = ""
    for at, letter in enumerate(line):
        if quoted:
            quoted = "" if letter == quoted else quoted
        elif letter in "'\"":
            quoted = letter
        elif letter == "#" and (at == 0 or line[at - 1].isspace()):
            return line[:at]
    return line


def _shell_faults(code: str) -> Iterator[str]:
    prompted = [line.strip()[2:] for line in code.splitlines() if line.strip().startswith("$ ")]
    for line in _lines("\n".join(prompted) if prompted else code):
        for part in _parts(line):
            yield from _command_faults(part)
    for name in re.findall(r"\b(TOUCHSTONE_[A-Z0-9_]*[A-Z0-9])\b", code):
        if name.removesuffix("_FILE") not in _settings() | {"TOUCHSTONE_URL", "TOUCHSTONE_KEY"}:
            yield f"There is no setting {name}."


def _parts(line: str) -> Iterator[str]:
    """The commands of a line, between pipes and `;`, without the words of loops."""
    quoted = re.split(r"('[^']*'|\"[^\"]*\")", line)
    marked = "".join(part if at % 2 else re.sub(r"&&|\|\|?|;", "\0", part) for at, part in enumerate(quoted))
    for part in marked.split("\0"):
        words = re.sub(r"^(?:do|then|else|if|while)\s+", "", part.strip())
        if words and not re.match(r"(?:for\s.*\sin\s|done\b|fi\b|\()", words):
            yield words


def _command_faults(line: str) -> Iterator[str]:
    for inner in re.findall(r"\$\((.+?)\)", line):
        yield from _command_faults(inner)
    line = re.sub(r"\$\(.+?\)", "VALUE", line)
    words = shlex.split(_MANAGE.sub("m ", line.replace("\\\n", " ")), comments=True)
    if ends := [at for at, word in enumerate(words) if word in (">", ">>", "<", "&")]:
        words = words[: ends[0]]
    while words and _ASSIGNMENT.match(words[0]):
        words.pop(0)
    if not words or words[0] == "..." or line.startswith("{"):  # the body of a request above
        return
    program, rest = words[0], words[1:]
    if program.startswith(("docs/", "./docs/")) and (ROOT / program).exists():
        return
    if program in ("m", *_commands()):
        yield from _manage_faults(words if program != "m" else rest)
    elif program.rpartition("/")[2] == "touchstone":
        yield from _touchstone_faults(rest)
    elif program == "make":
        yield from (
            f"make has no target {word}." for word in rest if word.isidentifier() and word not in _targets()
        )
    elif program.endswith("pip") or (program == "pip"):
        yield from pip_faults(rest)
    elif re.fullmatch(r"\S*python3?", program):
        yield from _module_faults(rest)
    elif program == "curl":
        yield from (f"{path} is no address of ours." for path in _paths(rest) if not _is_address(path))
    elif program in ("GET", "POST", "PUT", "DELETE"):
        if not _is_address(rest[0]):
            yield f"{rest[0]} is no address of ours."
    elif program not in PROGRAMS:
        yield f"{program!r} is no command; correct it, or add it to PROGRAMS in tests/snippets.py: {line[:80]}"


class _Refused(Exception):
    pass


def _manage_faults(words: list[str]) -> Iterator[str]:
    from django.core.management import load_command_class

    if not words or words[0] == "help":
        return
    name, rest = words[0], [word for word in words[1:] if word != "..."]
    if name not in _commands():
        yield f"There is no command {name}."
        return
    parser = load_command_class(_commands()[name], name).create_parser("manage.py", name)
    yield from _parse(parser, rest, name)


def _parse(parser: argparse.ArgumentParser, words: list[str], name: str) -> Iterator[str]:
    def refuse(message: str) -> None:
        raise _Refused(message)

    for each in _with_subparsers(parser):
        each.error = refuse  # type: ignore[method-assign,assignment]
    try:
        parser.parse_args(words)
    except _Refused as refused:
        yield f"{name} {' '.join(words)}: {refused}"
    except SystemExit:
        pass  # --help


def _with_subparsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for sub in action.choices.values():
                yield from _with_subparsers(sub)


def _touchstone_faults(words: list[str]) -> Iterator[str]:
    from touchstone_client.cli.own import COMMANDS

    if not words or words[0] in ("help", "--help"):
        return
    if words[0] in COMMANDS:
        yield from _parse(
            COMMANDS[words[0]].parser(), [word for word in words[1:] if word != "..."], words[0]
        )
    else:
        yield from _manage_faults(words)


def pip_faults(words: list[str]) -> Iterator[str]:
    given = iter(words[1:] if words[:1] == ["install"] else [])
    for word in given:
        if word in ("-c", "-r", "-e", "--target", "--find-links", "--index-url"):
            following = next(given, "")
            if word == "-e":
                yield from _requirement_faults(following)
        elif not word.startswith("-"):
            yield from _requirement_faults(word)


def _requirement_faults(word: str) -> Iterator[str]:
    if word.startswith(("http://", "https://", "$URL", "./", "/", ".")):
        if "touchstone" in word and f"/{_client_wheel()}" not in word and not word.startswith("."):
            yield f"{word} is not the client's wheel: {_client_wheel()}."
        return
    name = re.split(r"[\[<>=!~;]", word)[0].lower().replace("_", "-")
    if name.startswith("touchstone") or name not in _packages():
        yield f"{word} is no package that this project knows; correct it, or add it to .ci/peers.txt or PEERS."


# Distributions of others that trainers install in their own environment.
PEERS = frozenset(
    ("openrlhf", "tensordict", "uv", "verifiers", "agentlightning", "omegaconf", "codetiming", "orjson")
)
PEERS |= frozenset(
    (
        "pyvers",
        "verl",
        "playwright",
        "torchdata",
        "stable-baselines3",
        "bitsandbytes",
        "trackio",
        "gymnasium",
        "ray",
        "vllm",
    )
)


def _module_faults(words: list[str]) -> Iterator[str]:
    if words[:1] == ["-m"] and len(words) > 1:
        module = words[1]
        if module == "pip":
            yield from pip_faults(words[2:])
        elif module not in PEER_MODULES and not _is_module(module):
            yield f"There is no module {module}."


def _is_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def _paths(words: list[str]) -> Iterator[str]:
    for word in words:
        if found := re.match(r"(?:\$URL|\$TOUCHSTONE_URL|http://127\.0\.0\.1:800[01])(/[^?\s]*)", word):
            yield found[1]


def _is_address(path: str) -> bool:
    from django.urls import Resolver404, resolve

    from apps.rewards.routes import PUBLIC

    if path in ("/healthz", "/readyz", "/client/"):
        return True
    concrete = re.sub(r"\$\w+|[A-Z]{3,}", "1", path)
    if any(re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", route.path), concrete) for route in PUBLIC):
        return True
    try:
        return resolve(concrete).func.__name__ != "not_found"
    except Resolver404:
        return False


def _python_faults(code: str) -> Iterator[str]:
    try:
        tree = ast.parse(textwrap.dedent(code))
    except SyntaxError as error:
        yield f"Python does not read it: {error}."
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from _import_faults(node.module, [alias.name for alias in node.names])
        elif isinstance(node, ast.Import):
            for alias in node.names:
                yield from _import_faults(alias.name, [])


OURS = ("touchstone_client", "workers", "apps", "docs", "benchmarks")


def _import_faults(module: str, names: list[str]) -> Iterator[str]:
    if module.split(".")[0] not in OURS:
        return
    if not _is_module(module):
        yield f"There is no module {module}."
        return
    there = _names_in(module)
    for name in names:
        if name not in there and not _is_module(f"{module}.{name}"):
            yield f"{module} has no {name}."


def _names_in(module: str) -> set[str]:
    """By its source where a package that it needs is not installed."""
    try:
        return set(dir(importlib.import_module(module)))
    except MissingExtra:
        found = importlib.util.find_spec(module)
        assert found is not None and found.origin is not None
        body = ast.parse(Path(found.origin).read_text()).body
        return {
            node.name
            for node in body
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        }


def _toml_faults(code: str) -> Iterator[str]:
    from workers.schema.recipe import Recipe, parse_recipe

    try:
        read = tomllib.loads(code)
    except tomllib.TOMLDecodeError as error:
        yield f"TOML does not read it: {error}."
        return
    recipe_keys = set(Recipe.__dataclass_fields__)
    if "objective" in read or len(set(read) & recipe_keys) > len(set(read) - recipe_keys):
        try:
            parse_recipe(code)
        except RewardError as error:
            yield f"The recipe is refused: {error}"


def _json_faults(code: str) -> Iterator[str]:
    from workers.schema.endpoints import parse_spec

    if "..." in code:  # cut short
        return
    try:
        read = json.loads(code)
    except ValueError as error:
        if not all(_is_json(line) for line in code.splitlines()):  # JSON Lines
            yield f"JSON does not read it: {error}."
        return
    if "components" in read and "endpoint" not in read:
        try:
            parse_spec(read)
        except RewardError as error:
            yield f"The composition is refused: {error}"


def _is_json(line: str) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


@cache
def _commands() -> dict[str, str]:
    from django.core.management import get_commands

    return {name: app for name, app in get_commands().items() if app.startswith("apps.")}


@cache
def _targets() -> frozenset[str]:
    return frozenset(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


@cache
def _settings() -> frozenset[str]:
    return frozenset(re.findall(r"`(TOUCHSTONE_[A-Z0-9_]+)", (ROOT / "docs/settings.md").read_text()))


@cache
def _packages() -> frozenset[str]:
    lines = [
        *(ROOT / "constraints.txt").read_text().splitlines(),
        *(ROOT / ".ci/peers.txt").read_text().splitlines(),
    ]
    names = {
        re.split(r"[\[<>=!~; ]", line)[0].lower().replace("_", "-")
        for line in lines
        if not line.startswith("#")
    }
    return frozenset(names) | PEERS


@cache
def _client_wheel() -> str:
    from apps.core.client_wheel import client_wheel

    return client_wheel().file_name
