"""`score ENDPOINT FILE`: items as JSON lines in, results as JSON lines out, through the reward service."""

import json
import sys
from argparse import ArgumentParser
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from touchstone_client import RewardServiceError

from apps.core.commands import TouchstoneCommand
from apps.core.errors import DomainError
from apps.rewards.models import Endpoint
from apps.rewards.remote import ask
from apps.rewards.selectors import ENDPOINT_HELP, endpoint_named
from workers.errors import RewardError
from workers.schema import parse_json
from workers.schema.decode import require_object
from workers.schema.patterns import TextPattern

PAGE = 64
_INPUT = TextPattern(r"/inputs/(\d+)")
Line = tuple[int, dict[str, Any]]  # its number in the file, and the item


class Command(TouchstoneCommand):
    help = "Score items through the reward service: one JSON object per line in, one result per line out."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("endpoint", help=ENDPOINT_HELP)
        parser.add_argument("file", help="JSON lines, each an item of the reward API; - reads standard input")

    def run(self, *, endpoint: str, file: str, **_: Any) -> dict[str, Any]:
        found = endpoint_named(endpoint)
        results: list[dict[str, Any]] = []
        version: int | None = None
        with (
            nullcontext(sys.stdin) if file == "-" else _open(file) as lines,
            self.progress(None, "scored") as bar,
        ):
            for page in _pages(_items(lines)):
                reply = _score(found, page)
                version = reply["version"]
                bar.advance(len(page))
                for result in reply["results"]:
                    if self.as_json:
                        results.append(result)
                    else:
                        self.stdout.write(json.dumps(result, ensure_ascii=False))
        return {"endpoint": endpoint, "version": version, "results": results}


def _open(file: str) -> Any:
    try:
        return Path(file).open(encoding="utf-8")
    except OSError as error:
        raise DomainError(f"{file} cannot be read: {error.strerror}.") from error


def _items(lines: Iterable[str]) -> Iterator[Line]:
    for number, text in enumerate(lines, start=1):
        if text.strip():
            try:
                yield number, require_object(parse_json(text))
            except RewardError as error:
                raise DomainError(f"Line {number}: {error.message}", pointer=error.pointer or None) from None


def _pages(items: Iterable[Line]) -> Iterator[list[Line]]:
    page: list[Line] = []
    for item in items:
        page.append(item)
        if len(page) == PAGE:
            yield page
            page = []
    if page:
        yield page


def _score(endpoint: Endpoint, page: list[Line]) -> dict[str, Any]:
    """The reply to one page; an error names the line of the file rather than the place in the page."""
    try:
        return ask(endpoint, "score", {"inputs": [item for _, item in page]})
    except RewardServiceError as error:
        place = _INPUT.match(error.pointer or "")
        if place is None:
            raise DomainError(str(error), status=502) from error
        number, rest = page[int(place[1])][0], (error.pointer or "")[place.end() :]
        raise DomainError(f"Line {number}: {error.problem.get('detail')}", pointer=rest or None) from error
