"""What is recorded of a request: usage, metrics for Prometheus, a log line, what a guard decided, and samples."""

import hashlib
import logging
import time
from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from random import random
from typing import Any
from uuid import UUID

from django.utils import timezone
from starlette.requests import Request

from apps.rewards.accounting import SampledItem
from apps.rewards.guard_log import LoggedDecision, last_steps
from apps.rewards.serving.access import Caller
from apps.rewards.serving.deployments import Deployment
from apps.rewards.serving.prometheus_metrics import PrometheusMetrics
from apps.rewards.serving.registry import EndpointInfo
from apps.rewards.serving.requests import ScoreRequest, Tags
from apps.rewards.serving.response import ScoreResponse
from apps.rewards.serving.routing import comparison_key, hash_to_unit
from apps.rewards.serving.usage_writer import UsageWriter
from apps.rewards.usage import UsageEvent, UsageGroup
from workers.schema import Trajectory

logger = logging.getLogger("touchstone.rewards")


@dataclass(eq=False, slots=True)
class RequestLog:
    """What becomes known of a request on its way. started: of time.perf_counter."""

    request: Request
    started: float
    usage: UsageWriter
    metrics: PrometheusMetrics
    caller: Caller
    deployment: Deployment | None = None
    asked: ScoreRequest | None = None

    def answered(self, response: ScoreResponse) -> None:
        assert self.deployment is not None
        info, usage = self.deployment.info, response.usage
        self.metrics.answered(
            info, response.seconds, usage["inputs"], usage["tokens"], usage["cached_tokens"]
        )
        by_version = response.places_by_version()
        for version, places in by_version.items():
            self._count(response, version, places)
        if info.sample_share > 0:
            self._sample(info, response, by_version)
        tags = response.request.tags
        logger.info(
            "%s@%s inputs=%d tokens=%d cached=%d ms=%.1f caller=%s run=%s policy=%s",
            *(info.full_name, response.version, usage["inputs"], usage["tokens"], usage["cached_tokens"]),
            *(usage["milliseconds"], self.caller.name, tags.run, tags.policy_version),
        )

    def refused(self, status: int) -> None:
        """Requests for endpoints that are not the caller's are not counted: there is no endpoint to count them for."""
        if self.deployment is None:
            return
        version = self.deployment.version
        self.metrics.refused(self.deployment.info, status)
        milliseconds = 1000 * (time.perf_counter() - self.started)
        self.usage.record(UsageEvent(self._group(version.number if version else 0), status, milliseconds))

    def _count(self, response: ScoreResponse, version: int, places: list[int]) -> None:
        scores = [response.scores[place] for place in places]
        self.usage.record(
            UsageEvent(
                self._group(version),
                200,
                1000 * response.seconds,
                rewards=tuple(score.reward for score in scores),
                tokens=sum(score.tokens + score.reason_tokens for score in scores),
                cached_tokens=sum(score.cached_tokens for score in scores),
                uncertain=sum("uncertain" in score.flags for score in scores),
                truncated=sum("truncated" in score.flags for score in scores),
                flags=tuple(Counter(flag for score in scores for flag in set(score.flags)).items()),
                receipt=self._receipt("" if version == response.version else "candidate"),
                decisions=tuple(
                    self._decision(response, place) for place in (places if response.guards else ())
                ),
            )
        )

    def _decision(self, response: ScoreResponse, place: int) -> LoggedDecision:
        """Of a guard. Every decision to ask is reviewed, and a share of the others."""
        assert self.deployment is not None
        info, result = self.deployment.info, response.guards[place]
        content = response.sent_items[place].content
        assert isinstance(content, Trajectory)
        return LoggedDecision(
            result=result,
            at=timezone.now(),
            reward=response.scores[place].reward,
            is_sampled=result.decision == "ask" or random() < info.guard_review_share,  # noqa: S311
            redaction=info.guard_redaction,
            steps=last_steps(content, info.guard_characters),
            characters=info.guard_characters,
        )

    def _sample(self, info: EndpointInfo, response: ScoreResponse, by_version: dict[int, list[int]]) -> None:
        """Whole groups, or all answers to a prompt, within an hour: items that are compared are sampled together."""
        results: list[dict[str, Any]] | None = None
        for version, places in by_version.items():
            group = self._group(version)
            for place in places:
                item, score = response.items[place], response.scores[place]
                key = comparison_key(Tags(), item)
                drawn = random() if key is None else hash_to_unit(key, salt=_salt(info.pk, group.hour))  # noqa: S311
                if drawn >= info.sample_share or not self.usage.has_room(score.tokens):
                    continue
                results = results or response.results()
                self.usage.sample(SampledItem(group, item, results[place], info.redaction))

    def _group(self, version: int) -> UsageGroup:
        assert self.deployment is not None
        tags = self.asked.tags if self.asked else Tags()
        return UsageGroup(
            endpoint=self.deployment.info.pk,
            hour=timezone.now().replace(minute=0, second=0, microsecond=0),
            version=version,
            caller=self.caller.name,
            run=tags.run or "",
            policy_version=tags.policy_version or "",
        )

    def _receipt(self, part: str) -> UUID | None:
        """Of the `Idempotency-Key` under which the caller repeats a request, each caller having its own.
        part: of a request that two versions answered."""
        sent = self.request.headers.get("Idempotency-Key")
        if not sent:
            return None
        digest = hashlib.blake2b(f"{self.caller.name}\0{part}\0{sent}".encode(), digest_size=16).digest()
        return UUID(bytes=digest)


def _salt(endpoint: int, hour: datetime) -> bytes:
    return endpoint.to_bytes(8, "big") + int(hour.timestamp()).to_bytes(8, "big")
