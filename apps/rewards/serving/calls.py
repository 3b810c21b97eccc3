"""One request as it is counted: for the usage page, for Prometheus, and now and then as a sample."""

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.utils import timezone
from starlette.requests import Request

from apps.rewards.accounting import Sample
from apps.rewards.serving.access import Caller
from apps.rewards.serving.deployments import Deployment
from apps.rewards.serving.requests import ScoreRequest
from apps.rewards.serving.scored import Scored
from apps.rewards.serving.state import State
from apps.rewards.usage import Event, Group
from workers.schema import Item, item_json

SAMPLE_TOKENS = 50_000  # of what is kept: a sample is there to be looked at


@dataclass(eq=False, slots=True)
class Call:
    """What becomes known of a request on its way. started: of time.perf_counter."""

    request: Request
    started: float
    state: State
    caller: Caller | None = None
    deployment: Deployment | None = None
    asked: ScoreRequest | None = None

    def answered(self, scored: Scored, items: Sequence[Item]) -> None:
        assert self.deployment is not None
        info, usage = self.deployment.info, scored.usage()
        group = self._group(scored.version)
        self.state.metrics.answered(
            info.name, scored.seconds, len(items), usage["tokens"], usage["cached_tokens"]
        )
        self.state.usage.record(
            Event(
                group,
                200,
                1000 * scored.seconds,
                rewards=tuple(scored.rewards),
                tokens=usage["tokens"],
                cached_tokens=usage["cached_tokens"],
                uncertain=sum("uncertain" in score.flags for score in scored.scores),
                truncated=sum("truncated" in score.flags for score in scored.scores),
                receipt=self._receipt(),
            )
        )
        small = bool(items) and scored.scores[0].tokens <= SAMPLE_TOKENS
        if info.keeps_samples and small and self.state.usage.wants_sample(info.pk):
            self.state.usage.sample(Sample(group, item_json(items[0]), scored.results()[0]))

    def refused(self, status: int) -> None:
        """Nothing is counted for endpoints that are not the caller's: there is none to count it for."""
        if self.deployment is None:
            return
        version = self.deployment.version
        self.state.metrics.refused(self.deployment.info.name, status)
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

    def _receipt(self) -> UUID | None:
        """Of the `Idempotency-Key` under which the caller repeats a request, its own for every caller."""
        sent = self.request.headers.get("Idempotency-Key")
        if not sent or self.caller is None:
            return None
        digest = hashlib.blake2b(f"{self.caller.name}\0{sent}".encode(), digest_size=16).digest()
        return UUID(bytes=digest)
