"""`promote ENDPOINT`: the standby revision becomes the active one, and what was active stands by."""

from argparse import ArgumentParser
from typing import Any

from apps.core.commands import TouchstoneCommand
from apps.rewards.remote import wait_until_served
from apps.rewards.selectors import ENDPOINT_HELP, endpoint_named, spec_of
from apps.rewards.services import promote_standby


class Command(TouchstoneCommand):
    help = "Make the standby revision of an endpoint the active one. Promoting again rolls back, as quickly."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("endpoint", help=ENDPOINT_HELP)
        parser.add_argument("--no-wait", action="store_true", help="do not wait for the reward service")
        parser.add_argument("--timeout", type=float, default=120.0, help="seconds to wait for it")

    def run(self, *, endpoint: str, no_wait: bool, timeout: float, **_: Any) -> dict[str, Any]:
        revision = promote_standby(endpoint=endpoint_named(endpoint), by=None)
        models = spec_of(revision).models
        self.say(f"Revision {revision.number} of {endpoint} is active: {', '.join(models)}.")
        result = {"endpoint": endpoint, "revision": revision.number, "model": next(iter(models), None)}
        if no_wait:
            return result
        served, note = wait_until_served(revision, seconds=timeout)
        self.say(f"{note[0].upper()}{note[1:]}.")
        return result | {"served": served}
