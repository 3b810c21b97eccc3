"""Reward programs in the interpreter of pydantic-monty: a subset of Python in Rust, each worker a process.

Its code reaches no file, network, process, clock, entropy or C extension; there is nothing of CPython to reach them by.
What it may use of time, memory and depth is limited, and a process that dies is replaced.
"""

import math
import os
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pydantic_monty
from pydantic_monty import Monty, MontyError, MontySession

from workers.errors import RewardError, Unavailable
from workers.programs.source import Program

_MEGABYTES = 128
_DEPTH = 200
_TOGETHER = 100  # trajectories in one run of the interpreter
_CALL_SECONDS = 30.0  # for all trajectories of a call
_WORKERS = 4
_GRACE = 0.5  # after which a worker that does not stop is killed
# Nothing answers the host's calls: clocks, waits and entropy are refused.
_POLICY: Any = {"datetime": "call_host", "sleep": "call_host", "random_start": "call_host"}
_RUN = """
def _number(value, name):
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name} returned {type(value).__name__}, which is no number")
    return float(value)

def _numbers(values):
    if values is None:
        return None
    if not isinstance(values, (list, tuple)):
        raise TypeError(f"step_rewards returned {type(values).__name__}; return a list, a number for each agent step")
    return [_number(value, "step_rewards") for value in values]

def _result(pair):
    return [_number(pair[0], "reward"), _numbers(pair[1])]

[_result(_program(trajectory)) for trajectory in trajectories]
"""
_lock = threading.Lock()
_started: tuple[int, Monty] | None = None  # and in which process


@dataclass(frozen=True, slots=True)
class ProgramResult:
    """steps: what step_rewards returned, a number for each agent step; None where the program has no such function."""

    reward: float
    steps: tuple[float, ...] | None = None


@dataclass(frozen=True, slots=True)
class ProgramFailure:
    """message: what happened, with the line where that is known. summary: the same without what the error says, which
    may quote the input."""

    message: str
    summary: str = field(default="", compare=False)


def run_program(
    program: Program, trajectories: Sequence[dict[str, Any]], seconds: float = 1.0
) -> list[ProgramResult | ProgramFailure]:
    """In order. trajectories: of `plain_item`. seconds: for each.

    Raises RewardError where all take too long together, and Unavailable where every worker is busy.
    """
    found: list[ProgramResult | ProgramFailure] = []
    end = time.monotonic() + _CALL_SECONDS
    for start in range(0, len(trajectories), _TOGETHER):
        part = trajectories[start : start + _TOGETHER]
        together = _run(program, part, min(seconds * len(part), _left(end)))
        if isinstance(together, list):
            found += together
        elif len(part) == 1:
            found.append(together)
        else:
            found += _one_by_one(program, part, seconds, end)
    return found


def _one_by_one(
    program: Program, part: Sequence[dict[str, Any]], seconds: float, end: float
) -> Iterator[ProgramResult | ProgramFailure]:
    for trajectory in part:
        own = _run(program, [trajectory], min(seconds, _left(end)))
        yield own[0] if isinstance(own, list) else own


def _left(end: float) -> float:
    left = end - time.monotonic()
    if left <= 0:
        raise RewardError(
            f"the reward program took more than {_CALL_SECONDS:g} seconds for the inputs of one request; make it "
            "faster, or send fewer inputs."
        )
    return left


def _run(
    program: Program, trajectories: Sequence[dict[str, Any]], seconds: float
) -> list[ProgramResult | ProgramFailure] | ProgramFailure:
    """Of all of them, or the first failure, whichever it is."""
    limits: Any = {
        "max_feed_duration_secs": seconds,
        "max_memory": _MEGABYTES * 2**20,
        "max_recursion_depth": _DEPTH,
        "max_suspensions": 1,
        "max_total_sleep_secs": 0.0,
    }
    try:
        with _pool().checkout(script_name="reward.py", limits=limits, os_policy=_POLICY) as session:
            _feed(session, program.wrapped)
            values = _feed(session, _RUN, {"trajectories": list(trajectories)})
    except TimeoutError:
        raise Unavailable("every process that runs reward programs is busy; try again.") from None
    except MontyError as error:
        return ProgramFailure(*_described(error, seconds))
    if not isinstance(values, list) or len(values) != len(trajectories):
        return _failure("the program did not return a number for each trajectory.")
    return [_checked(value) for value in values]


def _feed(session: MontySession, code: str, inputs: dict[str, Any] | None = None) -> Any:
    return session.feed_run(code, inputs=inputs, print_callback=_discard)


def _discard(stream: str, text: str) -> None:
    """What a program prints goes nowhere."""


def _checked(value: Any) -> ProgramResult | ProgramFailure:
    """Nothing that comes out of the sandbox is taken for granted."""
    reward, steps = value
    numbers = [reward, *(steps or ())]
    if not all(isinstance(number, float) for number in numbers):
        return _failure("the program did not return numbers.")
    if not all(map(math.isfinite, numbers)):
        return _failure("the program returned infinity or NaN; return a finite number.")
    return ProgramResult(reward, None if steps is None else tuple(steps))


def _failure(text: str) -> ProgramFailure:
    return ProgramFailure(text, text)


def _described(error: MontyError, seconds: float) -> tuple[str, str]:
    """As `ProgramFailure`."""
    text = str(error)
    if getattr(error, "timed_out", False) or text.startswith("TimeoutError: feed time limit"):
        return (f"it took more than {seconds:g} seconds.",) * 2
    if isinstance(error, pydantic_monty.MontyCrashedError):
        return ("the process that ran it ended: it used too much of something, such as memory.",) * 2
    if text.startswith("MemoryError: memory limit"):
        text = f"it used more than {_MEGABYTES} MB of memory"
    frames = error.traceback() if hasattr(error, "traceback") else []
    own = [frame for frame in frames if frame.filename == "<python-input-0>"]
    kind = text.partition(":")[0]
    if not own:
        return f"{text[:500]}.", f"{kind[:100]}."
    line = own[-1]
    source = f"(in `{(line.source_line or '').strip()[:200]}`)."
    return f"line {line.line - 1}: {text[:500]} {source}", f"line {line.line - 1}: {kind[:100]} {source}"


def _pool() -> Monty:
    """Of this process, started at the first use. Its threads do not survive a fork, after which a call would hang."""
    global _started
    with _lock:
        if _started is None:
            pool = Monty(
                max_processes=_WORKERS, checkout_timeout=_CALL_SECONDS, feed_duration_limit_grace=_GRACE
            )
            pool.__enter__()
            _started = (os.getpid(), pool)
        process, pool = _started
    if process != os.getpid():
        raise RuntimeError("this process was forked from one that had run reward programs; fork before that.")
    return pool
