"""`rollback ENDPOINT`: make the revision before the active one active."""

from argparse import ArgumentParser
from typing import Any

from apps.core.commands import TouchstoneCommand
from apps.rewards.remote import wait_until_served
from apps.rewards.selectors import ENDPOINT_HELP, endpoint_named, spec_of
from apps.rewards.services import rollback


class Command(TouchstoneCommand):
    help = "Roll an endpoint back to an earlier revision."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("endpoint", help=ENDPOINT_HELP)
        parser.add_argument(
            "--to", type=int, help="the number of the revision; by default the one before the active one"
        )
        parser.add_argument("--no-wait", action="store_true", help="do not wait for the reward service")
        parser.add_argument("--timeout", type=float, default=120.0, help="seconds to wait for it")

    def run(
        self, *, endpoint: str, to: int | None, no_wait: bool, timeout: float, **_: Any
    ) -> dict[str, Any]:
        revision = rollback(endpoint=endpoint_named(endpoint), to=to, by=None)
        models = spec_of(revision).models
        self.say(f"{endpoint} was rolled back to revision {revision.number}: {', '.join(models)}.")
        result = {"endpoint": endpoint, "revision": revision.number, "model": models[0]}
        if no_wait:
            return result
        served, note = wait_until_served(revision, seconds=timeout)
        self.say(f"{note[0].upper()}{note[1:]}.")
        return result | {"served": served}
