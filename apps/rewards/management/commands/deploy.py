"""`deploy MODEL ENDPOINT`: a new revision of an endpoint, which is made if there is none."""

from argparse import ArgumentParser
from typing import Any

from apps.core.commands import TouchstoneCommand
from apps.rewards.remote import wait_until_served
from apps.rewards.services import deploy
from apps.training.selectors import model_named


class Command(TouchstoneCommand):
    help = "Deploy a model on an endpoint, and wait until the reward service answers with it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("model", help="project/name@version; the newest version without")
        parser.add_argument("endpoint")
        parser.add_argument("--no-wait", action="store_true", help="do not wait for the reward service")
        parser.add_argument("--timeout", type=float, default=120.0, help="seconds to wait for it")

    def run(self, *, model: str, endpoint: str, no_wait: bool, timeout: float, **_: Any) -> dict[str, Any]:
        found = model_named(model)
        revision = deploy(model=found, endpoint_name=endpoint, project=found.project, by=None)
        self.say(f"{found} is revision {revision.number} of {endpoint}.")
        result = {"endpoint": endpoint, "revision": revision.number, "model": str(found)}
        if no_wait:
            return result
        served, note = wait_until_served(revision, seconds=timeout)
        self.say(f"{note[0].upper()}{note[1:]}.")
        return result | {"served": served}
