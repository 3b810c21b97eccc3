"""`deploy MODEL ENDPOINT`: a new revision of an endpoint, which is made if there is none."""

from argparse import ArgumentParser
from typing import Any

from apps.core.commands import TouchstoneCommand
from apps.rewards.remote import wait_until_served
from apps.rewards.services import Beside, deploy
from apps.training.selectors import model_named


class Command(TouchstoneCommand):
    help = "Deploy a model on an endpoint, and wait until the reward service answers with it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("model", help="project/name@version; the newest version without")
        parser.add_argument("endpoint")
        parser.add_argument("--shadow", action="store_true", help="on trial in the shadow of what answers")
        parser.add_argument(
            "--canary", type=float, metavar="SHARE", help="on trial, answering this share (0 to 1)"
        )
        parser.add_argument("--automatic", action="store_true", help="have the rules of the trial decide")
        parser.add_argument("--no-wait", action="store_true", help="do not wait for the reward service")
        parser.add_argument("--timeout", type=float, default=120.0, help="seconds to wait for it")

    def run(
        self,
        *,
        model: str,
        endpoint: str,
        shadow: bool,
        canary: float | None,
        automatic: bool,
        no_wait: bool,
        timeout: float,
        **_: Any,
    ) -> dict[str, Any]:
        found = model_named(model)
        beside = None
        if canary is not None:
            beside = Beside("canary", canary, automatic=automatic)
        elif shadow:
            beside = Beside("shadow", automatic=automatic)
        revision = deploy(model=found, endpoint_name=endpoint, project=found.project, by=None, beside=beside)
        tried = ", on trial" if beside else ""
        self.say(f"{found} is revision {revision.number} of {endpoint}{tried}.")
        result = {"endpoint": endpoint, "revision": revision.number, "model": str(found)}
        if no_wait or beside is not None:
            return result
        served, note = wait_until_served(revision, seconds=timeout)
        self.say(f"{note[0].upper()}{note[1:]}.")
        return result | {"served": served}
