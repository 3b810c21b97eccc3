"""One request as it is counted: for the usage page, for Prometheus, and now and then as a sample."""

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from random import random
from typing import Any
from uuid import UUID

from django.utils import timezone
from starlette.requests import Request

from apps.rewards.accounting import Sample
from apps.rewards.serving.access import Caller
from apps.rewards.serving.answering import Answer, key_of, place_of
from apps.rewards.serving.deployments import Deployment
from apps.rewards.serving.directory import EndpointInfo
from apps.rewards.serving.requests import ScoreRequest, Tags
from apps.rewards.serving.scored import Scored
from apps.rewards.serving.state import State
from apps.rewards.usage import Event, Group
from workers.engine import Score


def _salt(endpoint: int, hour: datetime) -> bytes:
    return endpoint.to_bytes(8, "big") + int(hour.timestamp()).to_bytes(8, "big")


@dataclass(eq=False, slots=True)
class Call:
    """What becomes known of a request on its way. started: of time.perf_counter."""

    request: Request
    started: float
    state: State
    caller: Caller | None = None
    deployment: Deployment | None = None
    asked: ScoreRequest | None = None

    def answered(self, scored: Scored, answer: Answer) -> None:
        assert self.deployment is not None
        info, usage, items = self.deployment.info, scored.usage(), answer.items
        self.state.metrics.answered(info, scored.seconds, len(items), usage["tokens"], usage["cached_tokens"])
        for version, places in answer.by_version().items():
            self._count(scored, version, [scored.scores[place] for place in places])
        if info.sample_share > 0:
            self._sample(info, scored, answer)

    def _sample(self, info: EndpointInfo, scored: Scored, answer: Answer) -> None:
        """Whole groups, or all answers to a prompt, within an hour: what is to be compared is kept together."""
        results: list[dict[str, Any]] | None = None
        for version, places in answer.by_version().items():
            group = self._group(version)
            for place in places:
                item, score = answer.items[place], scored.scores[place]
                key = key_of(Tags(), item)
                drawn = random() if key is None else place_of(key, salt=_salt(info.pk, group.hour))  # noqa: S311
                if drawn >= info.sample_share or not self.state.usage.has_room(score.tokens):
                    continue
                results = results or scored.results()
                self.state.usage.sample(Sample(group, item, results[place], info.redaction))

    def _count(self, scored: Scored, version: int, scores: Sequence[Score]) -> None:
        self.state.usage.record(
            Event(
                self._group(version),
                200,
                1000 * scored.seconds,
                rewards=tuple(score.reward for score in scores),
                tokens=sum(score.tokens for score in scores),
                cached_tokens=sum(score.cached_tokens for score in scores),
                uncertain=sum("uncertain" in score.flags for score in scores),
                truncated=sum("truncated" in score.flags for score in scores),
                receipt=self._receipt("" if version == scored.version else "candidate"),
            )
        )

    def refused(self, status: int) -> None:
        """Nothing is counted for endpoints that are not the caller's: there is none to count it for."""
        if self.deployment is None:
            return
        version = self.deployment.version
        self.state.metrics.refused(self.deployment.info, status)
        milliseconds = 1000 * (time.perf_counter() - self.started)
        self.state.usage.record(Event(self._group(version.number if version else 0), status, milliseconds))

    def _group(self, version: int) -> Group:
        assert self.deployment is not None and self.caller is not None
        tags = self.asked.tags if self.asked else None
        return Group(
            endpoint=self.deployment.info.pk,
            hour=timezone.now().replace(minute=0, second=0, microsecond=0),
            version=version,
            caller=self.caller.name,
            run=(tags.run or "") if tags else "",
            policy_version=(tags.policy_version or "") if tags else "",
        )

    def _receipt(self, part: str) -> UUID | None:
        """Of the `Idempotency-Key` under which the caller repeats a request, its own for every caller.
        part: of a request that two versions answered."""
        sent = self.request.headers.get("Idempotency-Key")
        if not sent or self.caller is None:
            return None
        digest = hashlib.blake2b(f"{self.caller.name}\0{part}\0{sent}".encode(), digest_size=16).digest()
        return UUID(bytes=digest)
