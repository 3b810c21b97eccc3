"""What callers notice of a change of revision, with a standby and without: `python -m benchmarks.standby [--quick]`.

A reward service scores texts, one to a request, by two clients. Latencies of quiet traffic, while a revision is loaded
onto standby, promoted and rolled back, and while one is deployed without standby; the share of lost requests, and the
memory of the process. The step-encoder, with random heads.
"""

import argparse
import json
import os
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import django
import httpx

from benchmarks.import_scaling import own_database, server
from benchmarks.linear_serving import save_step_encoder
from benchmarks.serving import deployed, ours

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "apps.config.settings")

CLIENTS, WAIT_SECONDS = 2, 120.0
Json = dict[str, Any]


class Traffic:
    """Requests until it is closed; by phase, the milliseconds of each and how many failed."""

    def __init__(self, url: str, headers: dict[str, str]) -> None:
        self._url, self._headers = url, headers
        self.phase = "warm-up"
        self.milliseconds: dict[str, list[float]] = {}
        self.lost: dict[str, int] = {}
        self._ends = threading.Event()
        self._threads = [threading.Thread(target=self._ask, args=(number,)) for number in range(CLIENTS)]
        for thread in self._threads:
            thread.start()

    def during(self, phase: str, seconds: float = 0.0) -> None:
        """What follows is of `phase`."""
        self.phase = phase
        time.sleep(seconds)

    def close(self) -> None:
        self._ends.set()
        for thread in self._threads:
            thread.join()

    def _ask(self, client: int) -> None:
        with httpx.Client(headers=self._headers, trust_env=False, timeout=60) as http:
            count = 0
            while not self._ends.is_set():
                count += 1
                text = f"The parcel {count} of {client} is on its way, and comes on Monday. " * 4
                phase, began = self.phase, time.perf_counter()
                reply = http.post(self._url, json={"inputs": [{"text": text}]})
                self.milliseconds.setdefault(phase, []).append(1000 * (time.perf_counter() - began))
                self.lost[phase] = self.lost.get(phase, 0) + (reply.status_code != 200)
                self._ends.wait(0.02)


def measure(folder: Path, seconds: float) -> Json:
    from apps.accounts.models import Project
    from apps.rewards import services
    from apps.rewards.models import Endpoint
    from apps.training.models import RewardModel

    made = save_step_encoder(folder / "model")
    deployed("step-encoder", made)
    project = Project.objects.get()
    model = RewardModel.objects.get()
    others = [
        RewardModel.objects.create(
            project=project, name="step-encoder", version=version, artifact=_copy(made, version),
            manifest=model.manifest,
        )
        for version in (2, 3)
    ]  # fmt: skip
    with ours("step-encoder") as (url, headers):
        described = url.removesuffix("score")
        _wait(described, headers, lambda found: found["version"] == 1)
        traffic, memory = Traffic(url, headers), {}
        traffic.during("warm-up", 2.0)
        traffic.during("quiet", seconds)
        memory["one_revision_mb"] = _resident_mb(url)
        traffic.during("loading_standby")
        put: Json = {"endpoint_name": "step-encoder", "project": project, "by": None}
        services.deploy(model=others[0], release_options=services.ReleaseOptions(services.STANDBY), **put)
        _wait(described, headers, lambda found: (found["standby"] or {}).get("version") == 2)
        memory["with_standby_mb"] = _resident_mb(url)
        for phase, number in (("promoting", 2), ("rolling_back", 1)):
            traffic.during(phase)
            services.promote_standby(endpoint=Endpoint.objects.get(), by=None)
            _wait(described, headers, lambda found, number=number: found["version"] == number)
            traffic.during(phase, seconds / 2)
        services.set_standby(endpoint=Endpoint.objects.get(), revision=None, by=None)
        traffic.during("deploying_without_standby")
        services.deploy(model=others[1], **put)
        _wait(described, headers, lambda found: found["version"] == 3)
        traffic.during("deploying_without_standby", seconds / 2)
        traffic.close()
    quiet = _quantile(traffic.milliseconds["quiet"], 0.99)
    return memory | {
        "quiet_p99_ms": round(quiet, 1),
        "phases": {
            phase: {
                "requests": len(found),
                "lost": traffic.lost[phase],
                "p50_ms": round(_quantile(found, 0.5), 1),
                "slowest_over_quiet_p99": round(max(found) / quiet, 2),
            }
            for phase, found in traffic.milliseconds.items()
            if phase != "warm-up"
        },
    }


def _copy(folder: Path, version: int) -> str:
    from apps.core.storage import artifacts

    return artifacts.store_tree(folder, f"models/bench/step-encoder-{version}")


def _wait(url: str, headers: dict[str, str], condition: Any) -> None:
    until = time.monotonic() + WAIT_SECONDS
    while not condition(httpx.get(url, headers=headers, trust_env=False, timeout=30).json()):
        if time.monotonic() > until:
            raise RuntimeError("the reward service does not follow")
        time.sleep(0.05)


def _resident_mb(url: str) -> int:
    metrics = httpx.get(f"{url.partition('/api')[0]}/metrics", trust_env=False, timeout=30).text
    (line,) = [line for line in metrics.splitlines() if line.startswith("process_resident_memory_bytes")]
    return int(float(line.split()[1]) / 2**20)


def _quantile(values: list[float], share: float) -> float:
    return sorted(values)[min(int(share * len(values)), len(values) - 1)]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.standby", description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="touchstone-standby-") as folder, server():
        django.setup()
        with own_database("standby"):
            found = measure(Path(folder), 2.0 if options.quick else 20.0)
    print(json.dumps(found, indent=None if options.json else 2))


if __name__ == "__main__":
    main()
