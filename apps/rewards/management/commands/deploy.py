"""`deploy MODEL ENDPOINT`: a new revision of an endpoint, which is created if it does not exist.

The model replaces the model of the active revision; everything else of its spec stays.
"""

from argparse import ArgumentParser
from typing import Any

from apps.core.commands import TouchstoneCommand
from apps.core.errors import DomainError
from apps.rewards.remote import wait_until_served
from apps.rewards.selectors import shortest_name
from apps.rewards.services import STANDBY, ReleaseOptions, deploy
from apps.training.selectors import model_named


class Command(TouchstoneCommand):
    help = (
        "Deploy a model on an endpoint, in place of the model of its active revision (other components, transforms and "
        "the policy template stay), and wait until the reward service answers with it."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("model", help="project/name@version; without a version, the newest")
        parser.add_argument("endpoint", help="its name in the project of the model; created if it is new")
        parser.add_argument(
            "--shadow", action="store_true", help="score in the shadow of the active revision"
        )
        parser.add_argument(
            "--canary", type=float, metavar="SHARE", help="answer this share of requests (0 to 1)"
        )
        parser.add_argument(
            "--standby", action="store_true", help="keep it loaded and warm until `promote ENDPOINT`"
        )
        parser.add_argument("--automatic", action="store_true", help="let the rules of the release decide")
        parser.add_argument(
            "--reason", default="", help="why it should serve although a check of its report failed"
        )
        parser.add_argument("--no-wait", action="store_true", help="do not wait for the reward service")
        parser.add_argument("--timeout", type=float, default=120.0, help="seconds to wait for it")

    def run(
        self,
        *,
        model: str,
        endpoint: str,
        shadow: bool,
        canary: float | None,
        standby: bool,
        automatic: bool,
        reason: str,
        no_wait: bool,
        timeout: float,
        **_: Any,
    ) -> dict[str, Any]:
        found = model_named(model)
        release_options = None
        if canary is not None:
            release_options = ReleaseOptions("canary", canary, automatic=automatic)
        elif standby:
            release_options = ReleaseOptions(STANDBY)
        elif shadow:
            release_options = ReleaseOptions("shadow", automatic=automatic)
        slug, short = endpoint.rpartition("/")[::2]
        if slug not in ("", found.project.slug):
            raise DomainError(
                f"The model {found} belongs to the project {found.project.slug}, so it cannot be deployed on "
                f"{endpoint}; name {short} alone, or import the model into {slug}."
            )
        revision = deploy(
            model=found,
            endpoint_name=short,
            project=found.project,
            by=None,
            release_options=release_options,
            reason=reason,
        )
        stage = "" if release_options is None else f", as a {release_options.stage}"
        if standby:
            stage = ", on standby"
        served_as = shortest_name(revision.endpoint)
        self.say(f"{found} is revision {revision.number} of {served_as}{stage}.")
        result = {"endpoint": served_as, "revision": revision.number, "model": str(found)}
        if no_wait or release_options is not None:
            return result
        served, note = wait_until_served(revision, seconds=timeout)
        self.say(f"{note[0].upper()}{note[1:]}.")
        return result | {"served": served}
