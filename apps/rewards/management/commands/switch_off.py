"""`switch_off ENDPOINT --reason TEXT`: answer every request with 503 and the reason."""

from argparse import ArgumentParser
from typing import Any

from apps.core.commands import TouchstoneCommand
from apps.rewards.selectors import ENDPOINT_HELP, endpoint_named
from apps.rewards.services import switch_off


class Command(TouchstoneCommand):
    help = "Switch an endpoint off; callers get the reason."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("endpoint", help=ENDPOINT_HELP)
        parser.add_argument("--reason", required=True)

    def run(self, *, endpoint: str, reason: str, **_: Any) -> dict[str, Any]:
        off = switch_off(endpoint=endpoint_named(endpoint), reason=reason, by=None)
        self.say(f"{endpoint} is off: {off.switched_off_reason}")
        return {"endpoint": endpoint, "switched_off": True, "reason": off.switched_off_reason}
