"""Sends a run directory to a tracker while it grows, and says in a file how that goes."""

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from workers.errors import RewardError
from workers.json_files import write_json
from workers.schema.patterns import TextPattern
from workers.schema.report_annotators import without_annotator_names
from workers.schema.trackers import VARIABLES, printable
from workers.train.trackers.tracker import (
    EndState,
    Point,
    RunDescription,
    Tracker,
    event_point,
    numeric_values,
)

FOLDER = "tracking"  # of the run directory
DESCRIPTION, END = "description.json", "end.json"  # written by who started the run
_LOOK_SECONDS = 1.0  # between looks at a run that goes on
_RETRY_SECONDS = (2.0, 60.0)  # after a failure, doubled up to the second
_LAST_TRIES_SECONDS = 30.0  # after the end of the run
_LONGEST_PROBLEM = 400  # characters
_CREDENTIALS = TextPattern(r"://[^\s]*@")  # up to the last @: a password may have one, or a slash
_SECRET_VALUES = TextPattern(r"(?i)((?:token|key|password|secret)=)[^\s&#]+")  # of a query
_SECRET_NAMES = ("KEY", "TOKEN", "PASSWORD", "SECRET")


@dataclass
class TrackingState:
    """tracking/TRACKER.json. offset: of the first byte of events.jsonl that is not sent.

    problem: why something is not at the tracker; empty where everything is. state: how the run ended, once sent.
    results: what was sent of the results of a run that succeeded.
    """

    id: str = ""
    url: str = ""
    problem: str = ""
    state: str = ""
    offset: int = 0
    sent: int = 0
    results: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, path: Path) -> "TrackingState":
        return cls(**json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else cls()


@dataclass
class TrackingSession:
    """One run and one tracker. make: the tracker's class. into: a local folder, see Tracker."""

    run: Path
    name: str
    make: Callable[[RunDescription, Path | None], Tracker]
    into: Path | None = None
    state: TrackingState = field(init=False)
    _tracker: Tracker | None = None

    def __post_init__(self) -> None:
        if not (self.run / "config.json").is_file():
            raise RewardError(f"{self.run} is no run directory: it has no config.json.")
        (self.run / FOLDER).mkdir(exist_ok=True)
        self._path = self.run / FOLDER / f"{self.name}.json"
        # What an earlier attempt sent, where the run has a starter that goes on with it; else everything is sent.
        has_starter = (self.run / FOLDER / DESCRIPTION).is_file()
        self.state = TrackingState.read(self._path) if has_starter else TrackingState()

    def send(self) -> int:
        """What there is now; how many steps. Raises RewardError where the tracker takes it not."""
        before = self.state.sent
        try:
            self._send(run_end(self.run))
        except Exception as error:
            self._note(_problem(error))
            raise RewardError(self.state.problem) from error
        return self.state.sent - before

    def follow(self) -> int:
        """Until the run has ended; how many steps. A tracker that fails is tried again, at ever longer intervals.

        Raises RewardError where something is still not sent some time after the end of the run.
        """
        before, pause, ended_at = self.state.sent, _RETRY_SECONDS[0], None
        while True:
            end = run_end(self.run)
            ended_at = ended_at if ended_at is not None or end is None else time.monotonic()
            try:
                self._send(end)
                pause, waits = _RETRY_SECONDS[0], _LOOK_SECONDS
            except Exception as error:  # whatever the library raises: training goes on, and the page says it
                self._note(_problem(error))
                if ended_at is not None and time.monotonic() - ended_at > _LAST_TRIES_SECONDS:
                    raise RewardError(self.state.problem) from error
                pause, waits = min(2 * pause, _RETRY_SECONDS[1]), pause
            else:
                if end is not None:
                    return self.state.sent - before
            self._wait(waits, ended_at)

    def _wait(self, seconds: float, ended_at: float | None) -> None:
        """A run that ends meanwhile ends the wait."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            time.sleep(min(left, _LOOK_SECONDS))
            if ended_at is None and run_end(self.run) is not None:
                return

    def _send(self, end: "RunEnd | None") -> None:
        tracker = self._opened()
        points, offset = read_points(self.run / "events.jsonl", self.state.offset)
        if points:
            tracker.log(points)
        self.state.offset, self.state.sent = offset, self.state.sent + len(points)
        if end is not None and self.state.state != end.state:
            self._send_end(tracker, end)
        self._note("")

    def _send_end(self, tracker: Tracker, end: "RunEnd") -> None:
        """The state, whatever becomes of the results; those that failed are tried again with the run opened again."""
        try:
            if end.state == "succeeded":
                self._send_results(tracker)
        except Exception:
            self._tracker = None
            raise
        finally:
            tracker.end(end.state, end.error)
        self.state.state = end.state

    def _send_results(self, tracker: Tracker) -> None:
        """Each once. Raises what the first raised that failed, after all were tried."""
        report = json.loads((self.run / "report.json").read_text(encoding="utf-8"))
        numbers = report_numbers(report)
        step = int((report.get("train") or {}).get("steps", 0))
        results: dict[str, Callable[[], None]] = {
            "numbers": lambda: tracker.log([(step, numbers)]) if numbers else None,
            "report.json": lambda: tracker.log_file(self._nameless(report), "report.json"),
        }
        for path in self._model_files():
            results[f"model/{path.name}"] = partial(tracker.log_file, path, f"model/{path.name}")
        failed: list[Exception] = []
        for name in [name for name in results if name not in self.state.results]:
            try:
                results[name]()
            except Exception as error:  # whatever the library raises: the others are still worth sending
                failed.append(error)
            else:
                self.state.results.append(name)
        if failed:
            raise failed[0]

    def _nameless(self, report: dict[str, Any]) -> Path:
        """A copy for the tracker. Trackers take its name, and may read it until they have ended."""
        path = self.run / FOLDER / "sent" / self.name / "report.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, without_annotator_names(report))
        return path

    def _model_files(self) -> list[Path]:
        """The manifest; everything else of the model where it was asked for."""
        if self._description().get("weights"):
            return sorted(path for path in (self.run / "model").iterdir() if path.is_file())
        return [self.run / "model" / "touchstone.json"]

    def _opened(self) -> Tracker:
        if self._tracker is None:
            self._tracker = self.make(self._described(), self.into)
            self.state.id, self.state.url = printable(self._tracker.id), web_address(self._tracker.url)
            self.state.state = ""  # of an earlier attempt
            self._note("")
        return self._tracker

    def _description(self) -> dict[str, Any]:
        path = self.run / FOLDER / DESCRIPTION
        return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}

    def _described(self) -> RunDescription:
        given = self._description()
        if not given:
            config = json.loads((self.run / "config.json").read_text(encoding="utf-8"))
            parameters = {**config["recipe"], "seed": config.get("seed", 0)}
            given = {"name": self.run.resolve().name, "parameters": parameters}
        known = {key: value for key, value in given.items() if key != "weights"}
        return RunDescription(**known, resume_id=self.state.id)

    def _note(self, problem: str) -> None:
        if problem and problem != self.state.problem:
            sys.stderr.write(f"{problem}\n")
        self.state.problem = problem
        write_json(self._path, vars(self.state))


@dataclass(frozen=True, slots=True)
class RunEnd:
    state: EndState
    error: str = ""


def run_end(run: Path) -> RunEnd | None:
    """How the run ended: what its starter wrote down, else what its files say; None while it goes on."""
    told = run / FOLDER / END
    if told.is_file():
        return RunEnd(**json.loads(told.read_text(encoding="utf-8")))
    if (run / FOLDER / DESCRIPTION).is_file():
        return None  # its starter will write it down
    if (run / "manifest.json").is_file():
        return RunEnd("succeeded")
    error = run / "error.json"
    return (
        RunEnd("failed", json.loads(error.read_text(encoding="utf-8"))["message"])
        if error.is_file()
        else None
    )


def read_points(path: Path, offset: int) -> tuple[list[Point], int]:
    """The points from `offset` on, and the offset behind them. Whole lines: the last one may still be written."""
    points: list[Point] = []
    if not path.is_file():
        return points, 0
    with path.open("rb") as source:
        if path.stat().st_size < offset:  # begun again
            offset = 0
        source.seek(offset)
        for line in source:
            if not line.endswith(b"\n"):
                break
            offset += len(line)
            if (point := event_point(json.loads(line))) is not None:
                points.append(point)
    return points, offset


def report_numbers(report: dict[str, Any]) -> dict[str, float]:
    """The plain numbers of the report's sections, by "test/section/name"."""
    sections = {
        name: section for name, section in report.items() if isinstance(section, dict) and name != "train"
    }
    return numeric_values(
        {f"test/{name}/{key}": value for name, section in sections.items() for key, value in section.items()}
    )


def web_address(url: str) -> str:
    """Without credentials and query, which may hold a token; empty where a browser should not be sent there."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return ""
    if parts.scheme not in ("http", "https") or not host or not url.isprintable() or len(url) > 2000:
        return ""
    host = f"[{host}]" if ":" in host else host
    return urlunsplit((parts.scheme, f"{host}{port}", parts.path, "", parts.fragment.partition("?")[0]))


def without_secrets(text: str, environment: Mapping[str, str]) -> str:
    """The text without values of variables that may hold secrets, credentials in addresses and secrets in queries."""
    further = {name.strip() for name in environment.get(VARIABLES, "").split(",")}
    secrets = [
        value
        for name, value in environment.items()
        if len(value) >= 6 and (name in further or any(word in name.upper() for word in _SECRET_NAMES))
    ]
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, "[redacted]")
    return _SECRET_VALUES.sub(r"\1[redacted]", _CREDENTIALS.sub("://[redacted]@", text))


def _problem(error: Exception) -> str:
    """In one line. A RewardError is a sentence already."""
    words = error.message if isinstance(error, RewardError) else f"{type(error).__name__}: {error}"
    return printable(" ".join(without_secrets(words, os.environ).split()))[:_LONGEST_PROBLEM]
