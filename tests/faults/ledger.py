"""What the drivers were promised: everything an answer acknowledged, and everything that should not have been said."""

import threading
import uuid
from collections import Counter
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Ledger:
    # key: assignment, choice as shown.
    judgements: dict[uuid.UUID, tuple[int, str]] = field(default_factory=dict)
    left: dict[int, str] = field(default_factory=dict)  # assignment: skipped
    trajectories: list[str] = field(default_factory=list)  # external ids of tasks acknowledged
    runs: list[int] = field(default_factory=list)
    versions: dict[int, str] = field(default_factory=dict)  # revision of the endpoint: model
    answers: Counter[str] = field(default_factory=Counter)  # by driver and status
    violations: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def violate(self, what: str) -> None:
        with self._lock:
            self.violations.append(what if len(what) <= 9000 else f"{what[:1000]} ... {what[-8000:]}")

    def count(self, driver: str, status: object) -> None:
        with self._lock:
            self.answers[f"{driver} {status}"] += 1

    def summary(self) -> dict[str, Any]:
        return {
            "judgements": len(self.judgements),
            "trajectories": len(self.trajectories),
            "runs": len(self.runs),
            "scores": self.answers["scorer 200"],
            "refused": sum(
                count for name, count in self.answers.items() if not name.endswith((" 200", " 302"))
            ),
            "faults": sum(not said.startswith("seed") for said in self.faults),
            "violations": self.violations,
        }
