"""Commands of other distributions, by the entry point group `touchstone.commands`.

An entry point names an object with three members, or a class or function that returns one:

    title: str                                               a heading of `touchstone --help`
    commands() -> Mapping[str, str]                          what each command is called, and what it does
    run(name: str, arguments: Sequence[str]) -> int | None   run one; its exit status

`commands` should be quick: it is called for `--help`, and for every name that is not one of the client's. The name of
the entry point is a prefix that always reaches its commands: `touchstone manage deploy ...`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

GROUP = "touchstone.commands"


class CommandSource(Protocol):
    title: str

    def commands(self) -> Mapping[str, str]: ...
    def run(self, name: str, arguments: Sequence[str]) -> int | None: ...


@dataclass(frozen=True, slots=True)
class LoadedSource:
    """prefix: the name of its entry point. problem: why it cannot be used, and then it has no commands."""

    prefix: str
    title: str
    commands: Mapping[str, str]
    source: CommandSource | None
    problem: str | None = None


def load_sources() -> list[LoadedSource]:
    """In the order of their names; one that fails does not hinder the others."""
    found = sorted(entry_points(group=GROUP), key=lambda point: point.name)
    return [_load(point) for point in found]


def find_source(sources: Sequence[LoadedSource], name: str) -> LoadedSource | None:
    """The first that has the command."""
    return next((source for source in sources if name in source.commands), None)


def problems_of(sources: Sequence[LoadedSource]) -> Iterator[str]:
    return (source.problem for source in sources if source.problem)


def _load(point: EntryPoint) -> LoadedSource:
    try:
        source: Any = point.load()
        if isinstance(source, type) or not hasattr(source, "commands"):
            source = source()
        commands = {str(name): str(text) for name, text in source.commands().items()}
        return LoadedSource(point.name, str(source.title), commands, source)
    except (Exception, SystemExit) as error:  # whatever another distribution does
        owner = f" of {point.dist.name}" if point.dist is not None else ""
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        advice = _taken_name(point) or "update or remove it."
        problem = f"The commands `{point.name}`{owner} cannot be loaded ({point.value}: {reason}); {advice}"
        return LoadedSource(point.name, point.name, {}, None, problem)


def _taken_name(point: EntryPoint) -> str | None:
    """What to do where Python finds another package under the import name of the entry point's distribution."""
    name = point.module.partition(".")[0]
    try:
        spec = find_spec(name)
    except (ImportError, ValueError):
        return None
    if spec is None or point.dist is None:
        return None
    places = [Path(place) for place in spec.submodule_search_locations or ()]
    ours = Path(str(point.dist.locate_file(name)))
    if not ours.is_dir() or ours in places:
        return None
    return (
        f"the import name `{name}` belongs to another package here ({', '.join(map(str, places)) or spec.origin}): "
        f"install {point.dist.name} in a separate environment."
    )
