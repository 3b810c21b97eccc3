"""SLURM on one machine: `sbatch`, `srun`, `squeue`, `sacct`, `scancel` and `scontrol` that run batch scripts.

Nodes are folders: each task gets its own temporary folder, and no process sees another's. What a test does to nodes is
done through `preempt` and `fail_node`. Output is in the formats of the manual pages.
"""

import argparse
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

# ruff: noqa: T201 - commands print
COMMANDS = ("sbatch", "srun", "squeue", "sacct", "scancel", "scontrol")
KILL_WAIT = 20.0
UNKNOWN = "slurm_load_jobs error: Invalid job id specified"


class FakeSlurm:
    def __init__(self, folder: Path) -> None:
        self.folder, self.bin = folder, folder / "bin"

    @classmethod
    def install(cls, folder: Path) -> "FakeSlurm":
        slurm = cls(folder)
        slurm.bin.mkdir(parents=True)
        for name in COMMANDS:
            program = slurm.bin / name
            program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{__file__}" {name} "{folder}" "$@"\n')
            program.chmod(0o755)
        return slurm

    def job_ids(self) -> list[int]:
        return sorted(int(path.stem) for path in self.folder.glob("*.json"))

    @contextmanager
    def job(self, number: int) -> Iterator[dict[str, Any]]:
        """The job, to read and to change."""
        with (self.folder / ".lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            path = self.folder / f"{number}.json"
            found = json.loads(path.read_text())
            yield found
            path.with_suffix(".new").write_text(json.dumps(found))
            path.with_suffix(".new").replace(path)

    def state(self, number: int) -> str:
        with self.job(number) as job:
            return str(job["state"])

    def preempt(self, number: int) -> None:
        """By a job of higher priority: asked, then killed, and put back in the queue."""
        self._end(number, "PREEMPTED", requeue=True)

    def fail_node(self, number: int, *, requeue: bool = False) -> None:
        """It lost its power, and its disk. Without requeue: a cluster that does not start jobs again."""
        self._end(number, "NODE_FAIL", requeue=requeue, wait=0.0)
        for disk in self.folder.glob(f"node-{number}-*"):
            shutil.rmtree(disk, ignore_errors=True)

    def forget(self, number: int) -> None:
        """MinJobAge has passed: only the accounting knows the job."""
        with self.job(number) as job:
            job["forgotten"] = True

    def cancel(self, number: int) -> None:
        self._end(number, f"CANCELLED by {os.getuid()}", requeue=False)

    def tell_tasks(self, number: int, sent: signal.Signals) -> None:
        for path in self.folder.glob(f"tasks-{number}-*"):
            with suppress(ProcessLookupError):
                os.kill(int(path.read_text()), sent)

    def _end(self, number: int, state: str, *, requeue: bool, wait: float = KILL_WAIT) -> None:
        with self.job(number) as job:
            if job["state"] == "PENDING":
                job["state"] = state
                return
            if job["state"] != "RUNNING":
                return
            job["ending"], job["requeued"] = state, requeue
            group = job["group"]
        if wait:
            self.tell_tasks(number, signal.SIGTERM)
        deadline = time.monotonic() + wait
        while time.monotonic() < deadline and _is_alive(group):
            time.sleep(0.05)
        with suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)


def _is_alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def sbatch(slurm: FakeSlurm, arguments: list[str]) -> int:
    if "--version" in arguments:
        print("slurm 24.05.3")
        return 0
    parser = argparse.ArgumentParser()
    parser.add_argument("--parsable", action="store_true")
    parser.add_argument("--export", default="ALL")
    given = parser.parse_args(arguments)
    script = sys.stdin.read()
    options = dict(
        line.removeprefix("#SBATCH --").partition("=")[::2]
        for line in script.splitlines()
        if line.startswith("#SBATCH --")
    )
    if options.get("partition") == "none":
        print("sbatch: error: invalid partition specified: none", file=sys.stderr)
        return 1
    number = 1 + max(slurm.job_ids(), default=100)
    job = {
        "name": options["job-name"],
        "state": "PENDING",
        "script": script,
        "options": options,
        "exported": {name: os.environ[name] for name in given.export.split(",") if name in os.environ},
        "restarts": 0,
    }
    (slurm.folder / f"{number}.json").write_text(json.dumps(job))
    subprocess.Popen(
        [sys.executable, __file__, "run", str(slurm.folder), str(number)],
        start_new_session=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    print(number)
    return 0


def run(slurm: FakeSlurm, arguments: list[str]) -> int:
    number = int(arguments[0])
    while True:
        with slurm.job(number) as job:
            if job["state"] != "PENDING":
                return 0
            job |= {"state": "RUNNING", "ending": None}
            environment = {
                "PATH": f"{slurm.bin}:{os.environ['PATH']}",
                "HOME": os.environ.get("HOME", "/"),
                "SLURM_JOB_ID": str(number),
                "SLURM_JOB_NODELIST": "node[0-9]",
                "SLURM_NNODES": job["options"]["nodes"],
                "SLURM_RESTART_COUNT": str(job["restarts"]),
                **job["exported"],
            }
            with Path(job["options"]["output"]).open("ab") as out:
                script = subprocess.Popen(
                    ["bash", "-c", job["script"]],
                    env=environment,
                    cwd=job["options"]["chdir"],
                    stdout=out,
                    stderr=out,
                    start_new_session=True,
                )
            job["group"] = script.pid
        status = script.wait()
        with slurm.job(number) as job:
            job["state"] = job["ending"] or ("FAILED" if status else "COMPLETED")
            job["status"] = status
            if not job.get("requeued"):
                return 0
            job |= {"state": "PENDING", "restarts": job["restarts"] + 1, "requeued": False}


def srun(slurm: FakeSlurm, arguments: list[str]) -> int:
    command = arguments[next(n for n, each in enumerate(arguments) if not each.startswith("-")) :]
    job = os.environ["SLURM_JOB_ID"]
    tasks = []
    for node in range(int(os.environ["SLURM_NNODES"])):
        disk = slurm.folder / f"node-{job}-{node}-{os.getpid()}"
        disk.mkdir()
        environment = os.environ | {"SLURM_NODEID": str(node), "TMPDIR": str(disk)}
        task = subprocess.Popen(command, env=environment, cwd=disk)
        (slurm.folder / f"tasks-{job}-{node}").write_text(str(task.pid))
        tasks.append(task)
    worst = 0
    while tasks:
        for task in [each for each in tasks if each.poll() is not None]:
            tasks.remove(task)
            worst = worst or task.returncode
            if task.returncode:
                for other in tasks:
                    other.terminate()
        time.sleep(0.02)
    return worst if worst >= 0 else 128 - worst


def squeue(slurm: FakeSlurm, arguments: list[str]) -> int:
    parser = argparse.ArgumentParser()
    for flag in ("--noheader", "--me"):
        parser.add_argument(flag, action="store_true")
    for option in ("--jobs", "--name", "--states", "--format"):
        parser.add_argument(option)
    given = parser.parse_args(arguments)
    shown = []
    for number in slurm.job_ids():
        with slurm.job(number) as job:
            if not job.get("forgotten") and given.name in (None, job["name"]):
                state = job["state"].split()[0]
                shown.append((str(number), given.format.replace("%i", str(number)).replace("%T", state)))
    if given.jobs is not None:
        shown = [row for row in shown if row[0] == given.jobs]
        if not shown:
            print(UNKNOWN, file=sys.stderr)
            return 1
    for _, row in shown:
        print(row.replace("%r", "None"))
    return 0


def sacct(slurm: FakeSlurm, arguments: list[str]) -> int:
    number = next(each for each in arguments if each.startswith("--jobs=")).partition("=")[2]
    if int(number) in slurm.job_ids():
        with slurm.job(int(number)) as job:
            status = job.get("status", 0)
            print(f"{number}|{job['state']}|{max(status, 0)}:{max(-status, 0)}")
    return 0


def scancel(slurm: FakeSlurm, arguments: list[str]) -> int:
    number = int(arguments[-1])
    if number not in slurm.job_ids():
        print(f"scancel: error: Kill job error on job id {number}: Invalid job id specified", file=sys.stderr)
        return 1
    if "--node-fail" in arguments:  # ours: the node that a task runs on fails
        slurm.fail_node(number)
    elif "--signal=TERM" in arguments:
        slurm.tell_tasks(number, signal.SIGTERM)
    elif "--state=PENDING" not in arguments or slurm.state(number) == "PENDING":
        slurm.cancel(number)
    return 0


def scontrol(slurm: FakeSlurm, arguments: list[str]) -> int:
    print("\n".join(["localhost"] * 2))
    return 0


if __name__ == "__main__":
    chosen = {each.__name__: each for each in (sbatch, srun, squeue, sacct, scancel, scontrol, run)}
    sys.exit(chosen[sys.argv[1]](FakeSlurm(Path(sys.argv[2])), sys.argv[3:]))
