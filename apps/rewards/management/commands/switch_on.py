"""`switch_on ENDPOINT`: undo `switch_off`."""

from argparse import ArgumentParser
from typing import Any

from apps.core.commands import TouchstoneCommand
from apps.rewards.selectors import ENDPOINT_HELP, endpoint_named
from apps.rewards.services import switch_on


class Command(TouchstoneCommand):
    help = "Switch an endpoint on again."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("endpoint", help=ENDPOINT_HELP)

    def run(self, *, endpoint: str, **_: Any) -> dict[str, Any]:
        switch_on(endpoint=endpoint_named(endpoint), by=None)
        self.say(f"{endpoint} is on.")
        return {"endpoint": endpoint, "switched_off": False}
