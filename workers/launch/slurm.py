"""`--on slurm`: a batch script given to `sbatch`, followed by `squeue` and `sacct`.

The commands are those of a machine that may submit jobs; the script runs `python -m workers.launch` on each node by
`srun`. Formats as in the manual pages of SLURM 23 to 25.
"""

import os
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from workers.errors import RewardError
from workers.launch.job import (
    RENDEZVOUS_PORT,
    Handle,
    JobLog,
    JobPhase,
    JobStatus,
    LaunchedJob,
    LauncherUnavailable,
)
from workers.launch.local import file_log

_SECONDS = 60.0  # for a command
_BEFORE_LIMIT = 300  # seconds before the time limit that the training is asked to stop
_KEPT = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "SLURM_CONF", "SLURM_CLUSTERS", "TMPDIR")
_UNKNOWN_JOB = "invalid job id"
_NO_ACCOUNTING = "accounting storage is disabled"
_PHASES = {
    **dict.fromkeys(
        (
            "PENDING",
            "CONFIGURING",
            "REQUEUED",
            "REQUEUE_FED",
            "REQUEUE_HOLD",
            "RESV_DEL_HOLD",
            "SPECIAL_EXIT",
        ),
        JobPhase.PENDING,
    ),
    **dict.fromkeys(
        ("RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "RESIZING", "SIGNALING", "STAGE_OUT"),
        JobPhase.RUNNING,
    ),
    "COMPLETED": JobPhase.SUCCEEDED,
    **dict.fromkeys(("FAILED", "OUT_OF_MEMORY", "DEADLINE", "LAUNCH_FAILED"), JobPhase.FAILED),
    **dict.fromkeys(("PREEMPTED", "NODE_FAIL", "BOOT_FAIL", "TIMEOUT", "REVOKED"), JobPhase.PREEMPTED),
    "CANCELLED": JobPhase.CANCELLED,
}
_IN_WORDS = {
    "OUT_OF_MEMORY": "the job used more memory than it was given (OUT_OF_MEMORY); give it more, or lower batch_tokens",
    "NODE_FAIL": "a node failed (NODE_FAIL)",
    "PREEMPTED": "the job was preempted (PREEMPTED)",
    "TIMEOUT": "the job reached its time limit (TIMEOUT)",
    "DEADLINE": "the job missed its deadline (DEADLINE)",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmOptions:
    """python: on the nodes, by path. setup: lines of shell before it, such as `module load cuda`. container: what is
    put before python on each node, such as `apptainer exec --nv IMAGE.sif`. directives: further `#SBATCH` options.
    folder: that nodes can write, for what is printed before a training begins; empty: it is not kept. commands: the
    folder of sbatch and the others; empty: those of the PATH.
    """

    python: str
    partition: str = ""
    account: str = ""
    qos: str = ""
    setup: Sequence[str] = ()
    container: str = ""
    directives: Sequence[str] = ()
    folder: str = ""
    commands: str = ""


class SlurmLauncher:
    name, is_remote = "slurm", True

    def __init__(self, options: SlurmOptions) -> None:
        self._options = options

    def submit(self, job: LaunchedJob) -> Handle:
        if (found := self.find(job.name)) is not None:
            return found
        variables = {**job.environment, **job.secrets}
        # Names only: values are neither in the script nor on a command line, where others could read them.
        exported = ",".join(variables) or "NONE"
        printed = self._call(
            ["sbatch", "--parsable", f"--export={exported}"],
            script=batch_script(job, self._options),
            given=variables,
        )
        number = printed.strip().splitlines()[-1].partition(";")[0] if printed.strip() else ""
        if not number.isdecimal():
            raise RewardError(f"sbatch answered {printed.strip()[:200]!r} instead of a job number.")
        return {"job": number, "name": job.name}

    def find(self, name: str) -> Handle | None:
        number = self._job_named(name)
        return None if number is None else {"job": number, "name": name}

    def poll(self, handle: Handle) -> JobStatus:
        found = self._from_controller(handle["job"])
        if found is not None and found.phase != JobPhase.FAILED:
            return found
        accounted = self._from_accounting(handle["job"])  # with the exit status; it may be some seconds late
        return found if found is not None and accounted.exit_status is None else accounted

    def cancel(self, handle: Handle) -> None:
        # One that waits ends; the processes of one that runs are asked, and it ends with them.
        self._end(["--state=PENDING", handle["job"]])
        self._end(["--signal=TERM", handle["job"]])

    def kill(self, handle: Handle) -> None:
        self._end([handle["job"]])

    def logs(self, handle: Handle, offset: int = 0) -> JobLog:
        if not self._options.folder:
            return JobLog(b"", offset)
        return file_log(_log_path(self._options.folder, handle["name"]), offset)

    def forget(self, handle: Handle) -> None:
        """One that is not needed any more must not be started again by SLURM."""
        self._end([handle["job"]])

    def check(self) -> str:
        version = self._call(["sbatch", "--version"]).strip()
        self._call(["squeue", "--noheader", "--me", "--format=%i"])
        return f"{version} answers"

    def _end(self, arguments: Sequence[str]) -> None:
        try:
            self._call(["scancel", *arguments])
        except LauncherUnavailable:
            raise
        except RewardError as error:  # it has ended already
            if _UNKNOWN_JOB not in error.message.lower():
                raise

    def _job_named(self, name: str) -> str | None:
        """The number of the job that an interrupted call has submitted."""
        printed = self._call(
            ["squeue", "--noheader", "--me", f"--name={name}", "--states=all", "--format=%i"]
        )
        numbers = [line.strip() for line in printed.splitlines() if line.strip().isdecimal()]
        return numbers[-1] if numbers else None

    def _from_controller(self, number: str) -> JobStatus | None:
        """None where the controller has forgotten the job, some minutes after its end."""
        try:
            printed = self._call(
                ["squeue", "--noheader", f"--jobs={number}", "--states=all", "--format=%T|%r"]
            )
        except LauncherUnavailable:
            raise
        except RewardError as error:
            if _UNKNOWN_JOB in error.message.lower():
                return None
            raise
        rows = [line for line in printed.splitlines() if "|" in line]
        if not rows:
            return None
        state, _, reason = rows[-1].partition("|")
        return job_status(state, "" if reason.strip() in ("None", "") else reason.strip())

    def _from_accounting(self, number: str) -> JobStatus:
        command = ["sacct", "--noheader", "--parsable2", "--allocations", f"--jobs={number}"]
        try:
            printed = self._call([*command, "--format=JobIDRaw,State,ExitCode"])
        except LauncherUnavailable:
            raise
        except RewardError as error:
            if _NO_ACCOUNTING not in error.message.lower():
                raise
            printed = ""
        rows = [line.split("|") for line in printed.splitlines() if line.count("|") >= 2]
        if not rows:
            return JobStatus(JobPhase.FAILED, f"SLURM does not know job {number} any more")
        _, state, exit_code = rows[-1][:3]
        return job_status(state, "", exit_code)

    def _call(
        self, command: Sequence[str], *, script: str = "", given: Mapping[str, str] | None = None
    ) -> str:
        """What it prints. Raises LauncherUnavailable, RewardError with what it says on standard error."""
        program, *arguments = command
        path = str(Path(self._options.commands) / program) if self._options.commands else program
        environment = {name: os.environ[name] for name in _KEPT if name in os.environ} | dict(given or {})
        try:
            done = subprocess.run(  # noqa: S603 - the operator's SLURM
                [path, *arguments],
                input=script,
                env=environment,
                capture_output=True,
                text=True,
                timeout=_SECONDS,
                check=False,
            )
        except FileNotFoundError:
            raise RewardError(
                f"{path} is not on this machine; install SLURM's commands on the machine of the default worker, or "
                "set TOUCHSTONE_SLURM_COMMANDS to their folder."
            ) from None
        except (OSError, subprocess.TimeoutExpired) as error:
            raise LauncherUnavailable(f"{program} does not answer: {error}.", retry_after=30) from None
        if done.returncode == 0:
            return done.stdout
        said = " ".join((done.stderr or done.stdout).split())[:500]
        if any(words in said.lower() for words in _UNREACHABLE):
            raise LauncherUnavailable(f"SLURM does not answer {program}: {said}", retry_after=30)
        raise RewardError(f"{program} failed: {said or f'exit status {done.returncode}'}")


_UNREACHABLE = (
    "unable to contact slurm",
    "socket timed out",
    "connection refused",
    "connection timed out",
    "slurm_persist_conn_open",
    "resource temporarily unavailable",
    "backup controller",
    "slurmctld is not responding",
)


def job_status(state: str, reason: str, exit_code: str = "") -> JobStatus:
    """state: of squeue or sacct, such as "CANCELLED by 1000" or "RUNNING+". exit_code: of sacct, "STATUS:SIGNAL"."""
    word = state.split()[0].rstrip("+").upper() if state.split() else ""
    phase = _PHASES.get(word)
    if phase is None:
        return JobStatus(JobPhase.RUNNING, f"SLURM reports the state {state!r}")
    status, _, signal = exit_code.partition(":")
    number = int(status) if status.isdecimal() else None
    if not phase.is_final:
        return JobStatus(phase, reason)
    said = _IN_WORDS.get(word, "" if phase == JobPhase.SUCCEEDED else f"SLURM reports {state.strip()}")
    if signal.isdecimal() and int(signal):
        said = f"{said}, signal {signal}"
    elif phase == JobPhase.FAILED and word == "FAILED" and number:
        said = f"{said}, exit status {number}"
    elif reason and phase == JobPhase.FAILED and word == "FAILED":
        said = f"{said} ({reason})"
    return JobStatus(phase, said, number)


def batch_script(job: LaunchedJob, options: SlurmOptions) -> str:
    """One task on each node, which starts the processes of its node; the first node is the rendezvous of all."""
    wanted = job.resources
    directives = {
        "job-name": job.name,
        "nodes": wanted.hosts,
        "ntasks-per-node": 1,
        "cpus-per-task": wanted.cpus,
        "mem": f"{wanted.memory_gb}G",
        "gpus-per-node": wanted.gpus or None,
        "time": max(1, wanted.seconds // 60),
        "signal": f"TERM@{min(_BEFORE_LIMIT, wanted.seconds // 4)}",
        "open-mode": "append",
        "output": str(_log_path(options.folder, job.name)) if options.folder else "/dev/null",
        "chdir": options.folder or "/tmp",  # noqa: S108 - a folder that every node has; nothing is written there
        "comment": f"{job.run} {job.files}".strip().replace(" ", ","),
        "partition": options.partition,
        "account": options.account,
        "qos": options.qos,
    }
    lines = ["#!/bin/bash"]
    lines += [f"#SBATCH --{name}={value}" for name, value in directives.items() if value]
    lines += ["#SBATCH --requeue", *(f"#SBATCH {_one_line(each)}" for each in options.directives)]
    lines += [*options.setup]
    rendezvous: list[str] = []
    if wanted.hosts > 1:
        lines.append('head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)')
        rendezvous = ["--rendezvous", f'"$head:{RENDEZVOUS_PORT}"']
    command = [
        *("exec", "srun", "--export=ALL", "--kill-on-bad-exit=1", f"--cpus-per-task={wanted.cpus}"),
        *([options.container] if options.container else []),
        *(shlex.quote(options.python), "-m", job.module, *map(shlex.quote, job.arguments), *rendezvous),
    ]
    return "\n".join([*lines, " ".join(command), ""])


def _log_path(folder: str, name: str) -> Path:
    return Path(folder) / f"{name}.log"


def _one_line(directive: str) -> str:
    text = directive.strip().removeprefix("#SBATCH").strip()
    if "\n" in text or not text.startswith("-"):
        raise RewardError(
            f"{directive!r} in TOUCHSTONE_SLURM_DIRECTIVES is not an option of sbatch, such as --constraint=a100."
        )
    return text
