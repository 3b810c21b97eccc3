"""Bulk jobs over many stored trajectories: `python -m benchmarks.bulk [--json] [--quick] [--kind KIND] [--items N]`.

A million trajectories by a linear model, 20,000 by a step-encoder (whose heads are random, which does not change its
speed), each with a GPU worker as `manage.py worker gpu` starts it, which is killed now and then and started again.
Prints for each {items, results, missing, problems, repeated_chunks, kills, seconds, per_second, memory_mb,
max_difference, ratio, ...}. max_difference: of rewards to those of the model called directly. memory_mb: of the worker
and its child, by share of the items done.

ratio: the rate of a bulk job with one worker over that of the engine alone, which has the same trajectories in memory,
decoded, and renders and scores them in one process: the quicker of `workers.engine` (in requests of 256) and of what
the worker's child calls. Medians of interleaved repetitions; of a job the seconds from its first claimed chunk to its
end, without loading the model, which the engine's seconds leave out too. cpu_ratio: the CPU seconds of the engine over
those of the worker's child, which other work on the machine disturbs less.
"""

import argparse
import contextlib
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import django
import psutil  # type: ignore[import-untyped]

from benchmarks.bulk_items import copy_items
from benchmarks.import_scaling import own_database, server

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "apps.config.settings")

ROOT = Path(__file__).parents[1]
ITEMS = {"linear": 1_000_000, "step-encoder": 20_000}
QUICK_ITEMS = {"linear": 1200, "step-encoder": 60}
COMPARED = {"linear": 10_000, "step-encoder": 400}  # items of the comparison with the engine
LENGTH = {"linear": 1.0, "step-encoder": 0.25}  # of texts
REPETITIONS, KILLS = 3, 6
FITTED = 400
COMPARED_TAG = "compared"
Json = dict[str, Any]


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


class Worker:
    """`manage.py worker gpu`, started again when it was killed. Its memory and CPU are read while it works."""

    def __init__(self, environment: dict[str, str], log: Path) -> None:
        self.environment, self.log = environment, log
        self.kills = 0
        self.start()

    def start(self) -> None:
        with self.log.open("ab") as out:
            self.process = subprocess.Popen(
                [sys.executable, "manage.py", "worker", "gpu"],
                cwd=ROOT,
                env=self.environment,
                stdout=out,
                stderr=out,
            )

    def kill_at_work(self, job: Any) -> bool:
        """Whether it was killed: only while it holds a chunk, which another process then has to compute again."""
        from apps.core.jobs.job_queue import JobState

        self.process.send_signal(signal.SIGSTOP)
        time.sleep(0.05)  # for what it sent to the database
        if not job.chunks.filter(state=JobState.RUNNING).exists():
            self.process.send_signal(signal.SIGCONT)
            return False
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.kills += 1
        self.start()
        return True

    def stop(self) -> None:
        self.process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=30)
        self.process.kill()

    def memory_mb(self) -> float:
        total = 0
        with contextlib.suppress(psutil.Error):
            own = psutil.Process(self.process.pid)
            for process in (own, *own.children(recursive=True)):
                with contextlib.suppress(psutil.Error):
                    total += process.memory_info().rss
        return round(total / 2**20, 1)

    def child_cpu_seconds(self) -> float:
        with contextlib.suppress(psutil.Error):
            for child in psutil.Process(self.process.pid).children(recursive=True):
                if "workers.bulk" in child.cmdline():
                    return float(sum(child.cpu_times()[:2]))
        return 0.0


@contextlib.contextmanager
def nudging() -> Iterator[None]:
    """What `beat` does for waiting jobs."""
    from django.db import connection

    from apps.core.jobs.beat import NUDGE_SECONDS, nudge_eligible

    stop = threading.Event()

    def nudge() -> None:
        while not stop.wait(NUDGE_SECONDS):
            nudge_eligible()
        connection.close()

    thread = threading.Thread(target=nudge, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def save_model(kind: str, folder: Path) -> Path:
    """The linear model is fitted to random choices between stored trajectories."""
    from apps.trajectories.selectors import load_trajectories
    from benchmarks.linear_serving import save_step_encoder
    from benchmarks.small_linear import save_linear_of

    if kind == "step-encoder":
        return save_step_encoder(folder)
    first = _first_key()
    return save_linear_of(list(load_trajectories(range(first, first + 2 * FITTED)).values()), folder)


def _first_key() -> int:
    from apps.trajectories.models import Trajectory

    found = Trajectory.objects.order_by("pk").values_list("pk", flat=True).first()
    assert found is not None
    return found


def create_job(model: Any, *, compared: bool = False) -> Any:
    from apps.bulk.models import BulkJob
    from apps.bulk.services import create_bulk_job

    query = f"tag={COMPARED_TAG}" if compared else ""
    return create_bulk_job(project=model.project, work=BulkJob.Work.SCORE, model=model, filter=query)


def wait_for(job: Any, look: Any = lambda done: None) -> None:
    from apps.bulk.models import BulkJob
    from apps.bulk.selectors import job_progress

    while True:
        job.refresh_from_db()
        look(job_progress(job).done)
        if job.is_finished:
            break
        time.sleep(0.2)
    assert job.state == BulkJob.State.SUCCEEDED, job.error


def job_seconds(job: Any) -> float:
    """From the first claimed chunk, which follows the loading of the model, to the last."""
    from django.db.models import Max, Min

    found = job.chunks.aggregate(begun=Min("started_at"), ended=Max("finished_at"))
    return float((found["ended"] - found["begun"]).total_seconds())


def endure(kind: str, model: Any, worker: Worker, kills: int) -> Json:
    """The whole job, with kills at even shares of it, the first at its begin."""
    job = create_job(model)
    say(f"{kind}: {job.item_count:,} items in {job.chunks.count():,} chunks")
    memory: dict[str, float] = {}
    marks = [job.item_count * number // kills for number in range(kills)]
    said = time.monotonic()

    def look(done: int) -> None:
        nonlocal said
        if marks and done >= marks[0] and worker.kill_at_work(job):
            marks.pop(0)
        share = f"{10 * (10 * done // job.item_count):.0f} %"
        memory[share] = max(memory.get(share, 0.0), worker.memory_mb())
        if time.monotonic() - said > 20:
            said = time.monotonic()
            say(f"{kind}: {done:,} done, {worker.kills} kills, {worker.memory_mb():.0f} MB")

    began = time.perf_counter()
    wait_for(job, look)
    seconds = time.perf_counter() - began
    return facts(job) | {
        "kills": worker.kills,
        "seconds": round(seconds, 1),
        "per_second": round(job.item_count / seconds, 1),
        "memory_mb": memory,
    }


def facts(job: Any) -> Json:
    """Counted in the database: whether each trajectory has one result."""
    from django.db.models import Count, F, Sum

    counts = job.results.aggregate(results=Count("pk"), different=Count("trajectory", distinct=True))
    chunks = job.chunks.aggregate(
        missing=Sum("missing"), problems=Sum("problems"), tries=Sum(F("attempt") - 1)
    )
    assert counts["results"] == counts["different"] == job.item_count, counts
    return {
        "items": job.item_count,
        "results": counts["results"],
        "missing": chunks["missing"],
        "problems": chunks["problems"],
        "repeated_chunks": chunks["tries"],
    }


def compare(model: Any, folder: Path, worker: Worker, count: int, repetitions: int) -> Json:
    """{ratio, cpu_ratio, engine_per_second, bulk_per_second, max_difference}."""
    from apps.bulk.models import BulkResult
    from apps.bulk.selectors import trajectories_as_json
    from apps.trajectories.models import Trajectory

    first = _first_key()
    items = folder.parent / "items.json"
    items.write_bytes(trajectories_as_json(list(range(first, first + count))))
    Trajectory.objects.filter(pk__lt=first + count).update(tags=[COMPARED_TAG])
    engines, jobs = [], []
    rewards: dict[str, float] = {}
    for _ in range(repetitions):
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.bulk_engine", str(folder), str(items)],
            cwd=ROOT, env=worker.environment, capture_output=True, text=True, check=True,
        )  # fmt: skip
        engine = json.loads(done.stdout)
        rewards = engine.pop("rewards")
        engines.append(engine)
        job = create_job(model, compared=True)
        cpu: list[float] = []
        wait_for(job, lambda done, cpu=cpu: cpu.append(worker.child_cpu_seconds()))
        jobs.append({"seconds": job_seconds(job), "cpu_seconds": max(cpu) - engine["loading_cpu_seconds"]})
        results = BulkResult.objects.filter(bulk_job=job).values_list("trajectory", "reward")
        difference = max(abs((reward or 0.0) - rewards[str(key)]) for key, reward in results.iterator())
    engine_seconds = statistics.median(engine["seconds"] for engine in engines)
    seconds = statistics.median(each["seconds"] for each in jobs)
    return {
        "compared": count,
        "engine_per_second": round(count / engine_seconds, 1),
        "bulk_per_second": round(count / seconds, 1),
        "ratio": round(engine_seconds / seconds, 3),
        "cpu_ratio": round(
            statistics.median(engine["cpu_seconds"] for engine in engines)
            / statistics.median(each["cpu_seconds"] for each in jobs),
            3,
        ),
        "max_difference": difference,
    }


def measure(kind: str, *, items: int, kills: int, compared: int, repetitions: int) -> Json:
    from django.conf import settings
    from django.db import connection

    from apps.accounts.models import Project
    from apps.core.storage import artifacts
    from apps.training.models import RewardModel

    with (
        own_database(f"bulk_{kind.replace('-', '_')}"),
        tempfile.TemporaryDirectory(prefix="bulk-") as scratch,
    ):
        project = Project.objects.create(slug="bench", name="Bench")
        copy_items(project, items, length=LENGTH[kind], say=say)
        folder = save_model(kind, Path(scratch) / "model")
        artifact = artifacts.store_tree(folder, f"models/bench/{kind}-1")
        manifest = json.loads((folder / "touchstone.json").read_text())
        model = RewardModel.objects.create(
            project=project, name=kind, version=1, artifact=artifact, manifest=manifest
        )
        environment = os.environ | {
            "DATABASE_URL": _url(connection.settings_dict),
            "CELERY_BROKER_URL": settings.CELERY_BROKER_URL,  # nudges come from this process
            "TOUCHSTONE_JOB_SILENCE_SECONDS": "10",
            "OMP_NUM_THREADS": "1",
        }
        worker = Worker(environment, Path(scratch) / "worker.log")
        try:
            with nudging():
                found = (
                    compare(model, folder, worker, min(items, compared), repetitions) if repetitions else {}
                )
                say(f"{kind}: {json.dumps(found)}")
                return found | endure(kind, model, worker, kills)
        finally:
            worker.stop()
            if worker.log.exists():
                say(worker.log.read_text()[-2000:])


def _url(settings: Json) -> str:
    return f"postgresql://{settings['USER']}:{settings['PASSWORD']}@{settings['HOST']}:{settings['PORT']}/{settings['NAME']}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bulk", description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    parser.add_argument("--quick", action="store_true", help="few items: does it run?")
    parser.add_argument("--kind", choices=[*ITEMS], help="only this one")
    parser.add_argument("--items", type=int, help="so many of them")
    parser.add_argument("--kills", type=int, help=f"of the worker (default: {KILLS})")
    parser.add_argument("--repetitions", type=int, help=f"of the comparison (default: {REPETITIONS})")
    asked = parser.parse_args()
    quick = asked.quick
    kills = asked.kills if asked.kills is not None else 1 if quick else KILLS
    repetitions = asked.repetitions if asked.repetitions is not None else 1 if quick else REPETITIONS
    found: Json = {}
    with server():
        os.environ["CELERY_BROKER_URL"] = ""
        django.setup()
        for kind in [asked.kind] if asked.kind else [*ITEMS]:
            found[kind] = measure(
                kind,
                items=asked.items or (QUICK_ITEMS if quick else ITEMS)[kind],
                kills=kills,
                compared=QUICK_ITEMS[kind] // 2 if quick else COMPARED[kind],
                repetitions=repetitions,
            )
            say(f"{kind}: {json.dumps(found[kind])}")
    if asked.json:
        print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
