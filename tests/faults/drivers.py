"""The people and programs that use an installation, all at once, each trying again until it is answered."""

import json
import random
import re
import threading
import time
import traceback
import uuid
from typing import Any

import httpx

from tests.faults.ledger import Ledger
from tests.faults.models import ITEMS, RECIPE
from tests.faults.prepare import DATASET, ENDPOINT, PROJECT, trajectory

PASSING = frozenset({429, 502, 503, 504})  # refusals that say: try again
CHOICES = [f"{side}-{strength}" for side in ("left", "right") for strength in (1, 2, 3)] + ["tie", "both_bad"]
TOLERANCE = 1e-5  # of a standard deviation of the rewards, which they are scaled to
PATIENCE = 360.0  # seconds until a driver finds that it was forgotten; more than a stack may take to be ready
LAST_WORD = 120.0  # seconds to be answered in once everything is whole again
_NUMBERS = re.compile(r"[0-9a-f]{6,}")  # of this request only
_HIDDEN = re.compile(r'<input type="hidden" name="([^"]+)" value="([^"]*)"')


class TrainingStopped(Exception):
    """The scenario is over; what was not acknowledged by now may or may not have happened."""


class Driver(threading.Thread):
    """One of them. Subclasses write `turn`."""

    pause = 0.1

    def __init__(
        self, url: str, ledger: Ledger, stop: threading.Event, seed: str, told: dict[str, Any]
    ) -> None:
        super().__init__(name=seed, daemon=True)
        self.url, self.ledger, self.stop, self.told = url, ledger, stop, told
        self.draw = random.Random(seed)
        self.kind = type(self).__name__.lower()
        self.client = httpx.Client(base_url=url, timeout=20, trust_env=False)

    def turn(self) -> None:
        raise NotImplementedError

    def run(self) -> None:
        while not self.stop.wait(self.pause):
            try:
                self.turn()
            except TrainingStopped:
                break
            except Exception:
                self.ledger.violate(f"{self.name}: {traceback.format_exc(limit=6)}")
                time.sleep(0.5)
        self.client.close()

    def ask(self, method: str, path: str, **request: Any) -> httpx.Response:
        """The first answer that is no passing refusal. Raises Stopped, and is a violation, when there is none."""
        began, until = time.monotonic(), None
        refusals: dict[str, float] = {}  # what was said, and when it was said last
        while True:
            status: object
            try:
                answer = self.client.request(method, path, **request)
                status = answer.status_code
            except httpx.TransportError as error:
                answer, status = None, type(error).__name__
            said = f"{status} {_NUMBERS.sub('', answer.text[:400])}" if answer is not None else str(status)
            refusals[said] = time.monotonic() - began
            self.ledger.count(self.kind, status)
            if answer is not None and answer.status_code not in PASSING:
                if answer.status_code >= 500:
                    self.ledger.violate(
                        f"{self.name}: {method} {path} answered {status}: {answer.text[:500]}"
                    )
                else:
                    return answer
            now = time.monotonic()
            if until is None and self.stop.is_set():
                until = now + LAST_WORD
            if now > (began + PATIENCE if until is None else until):
                told = "; ".join(f"until {at:.1f} s {said}" for said, at in refusals.items())
                self.ledger.violate(
                    f"{self.name}: {method} {path} got no answer in {now - began:.0f} s: {told}"
                )
                raise TrainingStopped
            time.sleep(0.2)


class Browser(Driver):
    """Signed in with a cookie; sends forms."""

    login: dict[str, str]

    def page(self, path: str) -> httpx.Response:
        answer = self.ask("GET", path)
        while answer.status_code == 302 and "/login" in answer.headers["location"]:
            self.sign_in()
            answer = self.ask("GET", path)
        return answer

    def sign_in(self) -> None:
        self.client.cookies.clear()
        form = fields_of(self.ask("GET", "/login").text)
        answer = self.ask(
            "POST",
            "/login",
            data=form | {"username": self.login["email"], "password": self.login["password"]},
        )
        if answer.status_code != 302:
            self.ledger.violate(f"{self.name} could not sign in: {answer.status_code}")


class Annotator(Browser):
    """Judges; now and then twice, late, or not at all."""

    def __init__(self, *arguments: Any, login: dict[str, str]) -> None:
        super().__init__(*arguments)
        self.login = login

    def turn(self) -> None:
        base = f"/p/{PROJECT}/campaigns"
        text = self.page(f"{base}/{self.told['campaign']}/work/").text
        found = re.search(r'id="decision"[^>]*data-assignment="(\d+)"', text) or re.search(
            r'data-assignment="(\d+)"', text
        )
        if found is None:
            self.stop.wait(0.5)  # nothing is left
            return
        number, form = int(found[1]), fields_of(text)
        whim = self.draw.random()
        if whim < 0.05:
            return  # a closed lid: the lease is found again
        if whim < 0.15:
            self.ask(
                "POST", f"{base}/items/{number}/draft/", data=form | {"choice": self.draw.choice(CHOICES)}
            )
        if 0.15 < whim < 0.18:
            answer = self.ask("POST", f"{base}/items/{number}/skip/", data=form | {"reason": "unclear"})
            if answer.status_code == 302:
                self.ledger.left[number] = "skipped"
            return
        choice = self.draw.choice(CHOICES)
        for _ in range(2 if whim > 0.9 else 1):  # a double click is one submission
            answer = self.ask(
                "POST",
                f"{base}/items/{number}/submit/",
                data=form | {"choice": choice, "active_seconds": "1"},
            )
            if answer.status_code == 302 and "/login" not in answer.headers["location"]:
                self.ledger.judgements[uuid.UUID(form["idempotency_key"])] = (number, choice)
            elif answer.status_code != 302:
                self.ledger.violate(
                    f"{self.name}: a judgement was answered {answer.status_code}: {answer.text[-300:]}"
                )


class Program(Driver):
    """Speaks the API, with an idempotency key on every write."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.client.headers["Authorization"] = f"Bearer {self.told['key']}"

    def write(self, method: str, path: str, body: Any) -> Any:
        text = body if isinstance(body, str) else json.dumps(body)
        headers = {
            "Idempotency-Key": str(uuid.UUID(int=self.draw.getrandbits(128))),
            "Content-Type": "application/json",
        }
        answer = self.ask(method, path, content=text, headers=headers)
        if answer.status_code >= 400:
            self.ledger.violate(
                f"{self.name}: {method} {path} answered {answer.status_code}: {answer.text[:500]}"
            )
            raise TrainingStopped
        return answer.json()


class Importer(Program):
    pause = 0.3

    def turn(self) -> None:
        tasks = [f"{self.name}-{uuid.UUID(int=self.draw.getrandbits(128))}" for _ in range(5)]
        records = [trajectory(number, 0) | {"task": task} for number, task in enumerate(tasks)]
        body = "".join(json.dumps(record) + "\n" for record in records)
        result = self.write("POST", f"/api/v1/projects/{PROJECT}/trajectories?format=prompt-response", body)
        if result["created"] + result["duplicates"] != len(tasks):
            self.ledger.violate(f"{self.name}: {len(tasks)} trajectories sent, answered {result}")
        self.ledger.trajectories += tasks


class Trainer(Program):
    """Has one run at a time trained, all of the same recipe and seed: their weights are to be equal."""

    pause = 0.5

    def turn(self) -> None:
        body = {"dataset": DATASET, "recipe": RECIPE, "name": "trained", "seed": 7}
        run = self.write("POST", f"/api/v1/projects/{PROJECT}/runs", body)["run"]
        self.ledger.runs.append(run)
        while not self.stop.wait(0.5):
            if self.ask("GET", f"/api/v1/runs/{run}").json()["state"] in ("succeeded", "failed", "cancelled"):
                return


class Swapper(Program):
    """Deploys one model, then the other. held: by whoever wants to deploy by himself meanwhile."""

    pause = 2.0

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.held = threading.Lock()

    def turn(self) -> None:
        number = self.draw.choice("ab")
        model = self.told["models"][number]
        spec = {"components": [{"name": "reward", "model": model, "weight": 1.0}], "transforms": []}
        with self.held:
            answer = self.write("PUT", f"/api/v1/projects/{PROJECT}/endpoints/{ENDPOINT}", spec)
        self.ledger.versions[answer["revision"]["number"]] = number


class Scorer(Program):
    """Asks for rewards and holds each against the engine's own. What it cannot judge yet is judged at the end."""

    def __init__(self, *arguments: Any, rewards: dict[str, list[float]]) -> None:
        super().__init__(*arguments)
        self.rewards = rewards
        self.seen: list[tuple[int, int, float]] = []  # version, place in ITEMS, reward

    def turn(self) -> None:
        places = self.draw.sample(range(len(ITEMS)), self.draw.randint(1, 6))
        body = {"inputs": [ITEMS[place] for place in places]}
        answer = self.ask("POST", f"/api/v1/rewards/{ENDPOINT}/score", json=body)
        if answer.status_code != 200:
            self.ledger.violate(
                f"{self.name}: a score was answered {answer.status_code}: {answer.text[:500]}"
            )
            return
        document = answer.json()
        got = [result["reward"] for result in document["results"]]
        if len(got) != len(places) or any(not isinstance(reward, float) for reward in got):
            self.ledger.violate(f"{self.name}: {len(places)} items were answered {got}")
            return
        self.seen += [(document["version"], place, reward) for place, reward in zip(places, got, strict=True)]

    def judge(self, models: dict[int, str]) -> float:
        """Every reward seen against the model its version serves; the largest difference."""
        worst = 0.0
        for version, place, reward in self.seen:
            difference = abs(reward - self.rewards[models[version]][place])
            worst = max(worst, difference)
            if difference > TOLERANCE:
                self.ledger.violate(
                    f"{self.name}: item {place} got {reward} of version {version}, off by {difference}"
                )
        return worst


def fields_of(text: str) -> dict[str, str]:
    """The hidden fields of the first form that has an idempotency key, or else of all of the page."""
    forms = re.findall(r"<form.*?</form>", text, re.S)
    chosen = next((form for form in forms if "idempotency_key" in form), text)
    return dict(_HIDDEN.findall(chosen))
