"""The feedback loop from a trainer's side, over the JSON API: scripted annotators compare samples of a policy, their
comparisons are frozen with the earlier feedback, and a model is trained on them and deployed.

python -m docs.examples.people --url http://127.0.0.1:8000 --project sample --endpoint desk --key tsk_...

In the browser: see docs/feedback-loop.md. The key needs the scopes feedback:write, train and admin.
"""

import json
import random
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import httpx

from apps.demo import annotators
from apps.demo.agents import Conversation
from apps.demo.world import TASKS, DeskTask, Dice
from docs.examples.command_line import argument_parser
from docs.examples.desk import DeskEpisode, play, random_plans

PAIRS = 4  # comparisons for each request
ANSWERS = 8  # answers to a request that pairs are drawn from


class Refused(Exception):
    """The server refused a call."""


@dataclass(frozen=True)
class FeedbackLoop:
    """web: address of the pages and the JSON API. campaign: receives comparisons; `own`: others that are trained on."""

    web: str
    project: str
    endpoint: str
    key: str
    own: tuple[str, ...] = ("Sample comparisons",)
    recipe: str | dict[str, Any] = "bradley-terry"
    patience: float = 600.0

    @property
    def campaign(self) -> str:
        return f"Asked for {self.endpoint}"

    def collect_comparisons(self, played: Sequence[tuple[DeskTask, DeskEpisode]], *, occasion: str) -> int:
        """Have people compare answers to the same request; returns the number of comparisons."""
        return self.submit(list(comparisons(played, occasion)))

    def submit(self, feedback: Sequence[dict[str, Any]]) -> int:
        """Comparisons as `POST /feedback` takes them; returns their number."""
        body = "".join(json.dumps(comparison | {"campaign": self.campaign}) + "\n" for comparison in feedback)
        self._call("POST", f"projects/{self.project}/feedback", content=body.encode())
        return len(feedback)

    def retrain(self) -> str:
        """Freeze, train, deploy; returns the model that is active now. Raises Refused where a step failed."""
        wanted = {"name": self.endpoint, "kinds": ["pairwise"], "campaigns": [*self.own, self.campaign]}
        dataset = self._call("POST", f"projects/{self.project}/datasets", json=wanted)["name"]
        self._ended(f"projects/{self.project}/datasets/{dataset.rpartition('/')[2]}")
        wanted = {"dataset": dataset, "recipe": self.recipe, "name": self.endpoint}
        run = self._call("POST", f"projects/{self.project}/runs", json=wanted)["run"]
        model: str = self._ended(f"runs/{run}")["model"]
        spec = {
            "components": [{"name": "main", "type": "reward_model", "model": model, "weight": 1.0}],
            "transforms": [{"type": "normalise"}],
        }
        # A small policy writes some plans again and again: near-copies are on both sides of the split, and the check of
        # the new model that finds them asks for a reason.
        reason = {"reason": "Measured by the hidden reward of a policy, not by the test split."}
        path = f"projects/{self.project}/endpoints/{self.endpoint}"
        self._call("PUT", path, json=spec, params=reason)
        return model

    def _ended(self, path: str) -> dict[str, Any]:
        until = time.monotonic() + self.patience
        while (found := self._call("GET", path))["state"] in ("queued", "running"):
            if time.monotonic() > until:
                raise Refused(f"{path} has not ended after {self.patience:g} s")
            time.sleep(0.5)
        if found["state"] != "succeeded":
            raise Refused(f"{path} {found['state']}: {found['error']}")
        return found

    def _call(self, method: str, path: str, **more: Any) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {self.key}"}
        try:
            answer = httpx.request(method, f"{self.web}/api/v1/{path}", headers=headers, timeout=60, **more)
        except httpx.HTTPError as error:
            raise Refused(
                f"{method} {path}: {self.web} does not respond ({error}); check that it is running."
            ) from error
        if answer.is_error:
            raise Refused(f"{method} {path}: {answer.status_code} {answer.text[:500]}")
        found: dict[str, Any] = answer.json()
        return found


def comparisons(played: Sequence[tuple[DeskTask, DeskEpisode]], occasion: str) -> Iterable[dict[str, Any]]:
    """Comparisons of PAIRS pairs for each request by the sample project's annotators, with noise and biases."""
    dice, by_task = Dice(f"desk {occasion}"), dict[str, list[Conversation]]()
    for number, (task, episode) in enumerate(played):
        name = f"{occasion}-{number}"
        conversation = Conversation(name, task, "policy", episode.messages, episode)  # type: ignore[arg-type]
        by_task.setdefault(task.id, []).append(conversation)
    for group in by_task.values():
        pairs = [(a, b) for a, b in combinations(group, 2) if a.messages != b.messages]
        for a, b in dice.shuffled(pairs)[:PAIRS]:
            preference = annotators.preference(annotators.someone(dice), a, b)
            yield preference | {"a": {"messages": a.messages}, "b": {"messages": b.messages}}


def first_tries(seed: int) -> list[tuple[DeskTask, DeskEpisode]]:
    """Answers of an untrained policy."""
    plans = random_plans(random.Random(seed))
    return [(task, play(task, next(plans)[1].split())) for task in TASKS.values() for _ in range(ANSWERS)]


def main() -> None:
    parser = argument_parser(__doc__, server="the pages")
    parser.add_argument("--project", default="sample")
    options = parser.parse_args()
    feedback_loop = FeedbackLoop(options.url, options.project, options.endpoint, options.key)
    count = feedback_loop.collect_comparisons(first_tries(0), occasion="first")
    print(f"{count} comparisons; training ...")
    print(f"{feedback_loop.retrain()} is deployed on {options.endpoint}")


if __name__ == "__main__":
    main()
