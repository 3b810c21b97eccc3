"""One installation, used by everyone at once while faults strike, then looked at."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.core.homes import open_home
from tests.faults import invariants
from tests.faults.chaos import Fault, strike
from tests.faults.drivers import (
    LAST_WORD,
    Annotator,
    Browser,
    Driver,
    Importer,
    Scorer,
    Swapper,
    Trainer,
    fields_of,
)
from tests.faults.ledger import Ledger
from tests.faults.models import ITEMS, make_models, reference_of
from tests.faults.prepare import ENDPOINT, PROJECT
from tests.faults.stack import ROOT, Stack, until
from tests.migrated import fill_home


@dataclass
class Installation:
    """A prepared stack. told: by `prepare`. models: the folder of the two models. rewards: theirs."""

    stack: Stack
    told: dict[str, Any]
    models: Path
    rewards: dict[str, list[float]]

    @property
    def reference(self) -> Path:
        """An uninterrupted run's model, trained where it is asked for first."""
        snapshot = self.told["snapshot"]
        data = self.stack.home / "artifacts" / snapshot["artifact"]
        if not data.exists():  # the artifacts are elsewhere
            return self.models
        return reference_of(self.models, snapshot["hash"], data)


def install(
    home: Path, models: Path, environment: Mapping[str, str] | None = None, **outside: Any
) -> Installation:
    """Start on `home` and fill it. models: where the two models are, or will be kept. outside: of Stack."""
    rewards = make_models(models)
    stack = Stack(home, environment, **outside)
    if "DATABASE_URL" not in stack.environment:
        fill_home(home)
    try:
        stack.start()
        done = subprocess.run(
            [sys.executable, "-m", "tests.faults.prepare", str(models)],
            cwd=ROOT, env=stack.environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-3000:]
        told = json.loads(done.stdout)
        await_endpoint(stack, told["key"])
        return Installation(stack, told, models, rewards)
    except BaseException:
        stack.destroy()
        raise


@contextmanager
def installation(
    models: Path, environment: Mapping[str, str] | None = None, **outside: Any
) -> Iterator[Installation]:
    """One on a home of its own, gone at the end of the block whatever is left of it."""
    with open_home() as home:
        installed = install(home, models, environment, **outside)
        try:
            yield installed
        finally:
            installed.stack.destroy()


def await_endpoint(stack: Stack, key: str) -> None:
    path, headers = f"{stack.url}/api/v1/rewards/{ENDPOINT}/", {"Authorization": f"Bearer {key}"}

    def served() -> bool:
        answer = httpx.get(path, headers=headers, trust_env=False, timeout=5)
        return answer.status_code == 200 and answer.json()["version"] is not None

    until(served, 60, f"the endpoint is not served:\n{stack.said()}")


def rewards(stack: Stack, key: str) -> list[float]:
    """What the endpoint gives for ITEMS."""
    url, headers = f"{stack.url}/api/v1/rewards/{ENDPOINT}/score", {"Authorization": f"Bearer {key}"}
    answer = httpx.post(url, json={"inputs": ITEMS}, headers=headers, timeout=60, trust_env=False)
    return [result["reward"] for result in answer.raise_for_status().json()["results"]]


def endure(installed: Installation, plans: dict[int, list[Fault]], seconds: float) -> Ledger:
    """Everyone works for `seconds` under the faults of each plan; then all of it is checked. The stack stays up.

    plans: by their seeds, one after the other; the stack is whole again before the next begins.
    """
    stack, ledger, stop = installed.stack, Ledger(), threading.Event()
    drivers = _drivers(installed, ledger, stop, min(plans))
    for driver in drivers:
        driver.start()
    for seed, faults in plans.items():
        ledger.faults.append(f"seed {seed}")
        _strike(stack, faults, seconds, ledger)
        stack.wake()
        stack.await_ready()
    stop.set()
    for driver in drivers:
        driver.join(2 * LAST_WORD)
        if driver.is_alive():
            ledger.violate(f"{driver.name} hangs")
    invariants.settle(stack)
    resume_failed(installed, ledger)
    invariants.check(stack, ledger, installed.reference)
    _ask_with_key_in_address(installed, ledger)
    invariants.check_secrets(stack, ledger, _secrets(installed))
    _judge_scores(stack, ledger, drivers)
    return ledger


def _ask_with_key_in_address(installed: Installation, ledger: Ledger) -> None:
    """As OpenRLHF does, which sends no headers."""
    url = f"{installed.stack.url}/compat/openrlhf/{ENDPOINT}/get_reward?key={installed.told['key']}"
    body = {"query": ["Please help.Gladly."], "prompts": ["Please help."]}
    answer = httpx.post(url, json=body, trust_env=False, timeout=30)
    if answer.status_code != 200:
        ledger.violate(f"a key in the address was answered {answer.status_code}: {answer.text[:300]}")


def _secrets(installed: Installation) -> list[str]:
    """What was given to this installation or made by it, and no one may read in a log."""
    home, told = installed.stack.home, installed.told
    found = [told["key"].split("_", 2)[2], told["owner"]["password"]]
    found += [annotator["password"] for annotator in told["annotators"]]
    found.append((home / "secret_key").read_text())
    if (home / "postgres.json").exists():
        found.append(json.loads((home / "postgres.json").read_text())["password"])
    return found


def end(installed: Installation, ledger: Ledger) -> None:
    """Stop it, and see that nothing is left."""
    status = installed.stack.stop()
    if status != 0:
        ledger.violate(f"up ended with {status}:\n{installed.stack.said()}")
    invariants.check_gone(installed.stack.home, ledger)


def _drivers(installed: Installation, ledger: Ledger, stop: threading.Event, seed: int) -> list[Driver]:
    told, url = installed.told, installed.stack.url

    def common(name: str) -> tuple[Any, ...]:
        return url, ledger, stop, f"{name}-{seed}", told

    return [
        *(Annotator(*common(f"annotator{n}"), login=login) for n, login in enumerate(told["annotators"])),
        *(Scorer(*common(f"scorer{n}"), rewards=installed.rewards) for n in range(3)),
        Importer(*common("importer")),
        Trainer(*common("trainer")),
        Swapper(*common("swapper")),
    ]


def _strike(stack: Stack, faults: list[Fault], seconds: float, ledger: Ledger) -> None:
    began = time.monotonic()
    for fault in faults:
        time.sleep(max(0.0, began + fault.at - time.monotonic()))
        stack.tend()
        ledger.faults.append(str(fault))
        strike(stack, fault)
    time.sleep(max(0.0, began + seconds - time.monotonic()))


def resume_failed(installed: Installation, ledger: Ledger) -> None:
    """A run whose training process was killed has failed with a sentence; resumed by a person it goes to its end."""
    stack, stop = installed.stack, threading.Event()
    failed = stack.query("SELECT id FROM training_run WHERE state = 'failed' AND error <> ''")
    owner = Browser(stack.url, ledger, stop, "owner", installed.told)
    owner.login = installed.told["owner"]
    for (number,) in failed:
        page = owner.page(f"/p/{PROJECT}/training/runs/{number}/")
        owner.ask("POST", f"/p/{PROJECT}/training/runs/{number}/resume/", data=fields_of(page.text))
    owner.client.close()
    if failed:
        invariants.settle(stack)
    left = stack.query("SELECT id, error FROM training_run WHERE state <> 'succeeded'")
    if left:
        ledger.violate(f"runs that were resumed and did not succeed: {left}")


def versions_of(stack: Stack) -> dict[int, str]:
    """Revisions of the endpoint, and the model each serves: from the database, since an answer may have been lost."""
    rows = stack.query(
        "SELECT r.number, m.name FROM rewards_endpointrevision r "
        "JOIN rewards_revisionmodel j ON j.revision_id = r.id "
        "JOIN training_rewardmodel m ON m.id = j.model_id"
    )
    return dict(rows)


def _judge_scores(stack: Stack, ledger: Ledger, drivers: list[Driver]) -> None:
    models = versions_of(stack)
    for number, model in ledger.versions.items():
        if models.get(number) != model:
            ledger.violate(
                f"revision {number} was acknowledged with model {model}, and has {models.get(number)}"
            )
    for driver in drivers:
        if isinstance(driver, Scorer):
            driver.judge(models)
