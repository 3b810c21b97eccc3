"""What a command is: its options, and what it does with a session."""

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from touchstone_client.cli.connection import Connection, find_connection, warning_of_profile
from touchstone_client.cli.output import Output
from touchstone_client.client import Client


@dataclass
class Session:
    """One run of a command. Its client is made, and closed, as it is needed.

    so_far: what `--json` prints next to the error where the command does not end well.
    """

    options: Namespace
    output: Output
    stack: ExitStack = field(default_factory=ExitStack)
    so_far: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def connection(self) -> Connection:
        found = find_connection(self.options.profile, self.options.project)
        if found.profile is not None and (warning := warning_of_profile()):
            self.output.note(warning)
        return found

    @cached_property
    def client(self) -> Client:
        return self.stack.enter_context(self.connection.client())


@dataclass(frozen=True, slots=True)
class Command:
    """help: a line that begins with a verb. add: adds its own options. run: raises CommandFailed,
    RewardServiceError or OSError."""

    name: str
    help: str
    add: Callable[[ArgumentParser], None]
    run: Callable[[Session], None]

    def parser(self) -> ArgumentParser:
        parser = ArgumentParser(
            prog=f"touchstone {self.name}", description=f"{self.help}.", allow_abbrev=False
        )
        self.add(parser)
        _add_common_options(parser)
        return parser


def _add_common_options(parser: ArgumentParser) -> None:
    parser.add_argument("--project", metavar="SLUG", help="instead of the profile's, or TOUCHSTONE_PROJECT")
    parser.add_argument("--profile", metavar="NAME", help="settings of another `touchstone login --profile`")
    parser.add_argument(
        "--json", action="store_true", help="JSON on standard output, everything else on standard error"
    )
