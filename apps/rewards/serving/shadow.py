"""Scoring by the other version what one version answered, while a release is open.

One request at a time, after its answer has gone, and only as far as there is room: what the version that did not
answer costs is a small share of what the machine does, and nobody waits for it.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

from apps.rewards.releases import ScorePair
from apps.rewards.serving.access import Caller
from apps.rewards.serving.answering import Answer
from apps.rewards.serving.deployments import Deployment
from apps.rewards.serving.directory import ReleaseInfo
from apps.rewards.serving.requests import ScoreRequest
from apps.rewards.serving.usage import Usage
from workers.engine import Overloaded, Score, Version
from workers.schema import Item, Trajectory

SHADOW = ("", "shadow")  # whose turn it takes: all of it together as much as a project
logger = logging.getLogger(__name__)

MOST_WAITING = 64  # requests; the oldest are dropped for newer ones
MOST_ITEMS = 16  # of a request


@dataclass(frozen=True, slots=True)
class _Answered:
    deployment: Deployment
    answer: Answer
    caller: Caller
    policy_version: str


class Shadow:
    """`offer` and `run` on the event loop only. skipped: requests that found no room."""

    def __init__(self, usage: Usage, readers: Executor) -> None:
        self.skipped = 0
        self._usage = usage
        self._readers = readers
        self._waiting: deque[_Answered] = deque()
        self._some = asyncio.Event()

    def offer(self, deployment: Deployment, asked: ScoreRequest, answer: Answer, caller: Caller) -> None:
        policy = asked.tags.policy_version or ""
        if answer.release is None:
            release = deployment.info.release
            if release is not None and deployment.candidate.failure is not None:  # it scores nothing at all
                for _ in answer.scores:
                    self._usage.pair(ScorePair(release.pk, release.stage, policy, None))
            return
        if len(self._waiting) >= MOST_WAITING:
            self._waiting.popleft()
            self.skipped += 1
        self._waiting.append(_Answered(deployment, answer, caller, policy))
        self._some.set()

    async def run(self) -> None:
        while True:
            await self._some.wait()
            while self._waiting:
                one = self._waiting.popleft()
                try:
                    await self._compare(one)
                except Exception:  # it must not end: a release would wait for ever
                    logger.exception("the release of %s could not be compared", one.deployment.info.full_name)
            self._some.clear()

    async def _compare(self, one: _Answered) -> None:
        answer, release = one.answer, one.answer.release
        now, active = one.deployment.loaded_release, one.deployment.version
        if release is None or now is None or active is None or now[0].pk != release.pk:
            return  # it ended meanwhile
        candidate = now[1]
        if answer.version not in (active.number, candidate.number):
            return
        places = range(min(len(answer.scores), MOST_ITEMS))
        by_candidate = [place for place in places if place in answer.by_candidate]
        by_active = [place for place in places if place not in answer.by_candidate]
        with active.lease(), candidate.lease():
            baseline = await self._scored(active, answer, by_candidate, one.caller)
            tried = await self._scored(candidate, answer, by_active, one.caller)
        for place, other in (baseline | tried).items():
            own = answer.scores[place]
            scores = (other, own) if place in baseline else (own, other)
            self._usage.pair(_pair(release, one.policy_version, answer.items[place], scores))

    async def _scored(
        self, version: Version, answer: Answer, places: Sequence[int], caller: Caller
    ) -> dict[int, Score | None]:
        """By place, None for what it cannot score; nothing where there is no room."""
        if not places:
            return {}
        items = [answer.items[place] for place in places]
        loop = asyncio.get_running_loop()
        try:
            prepared = await loop.run_in_executor(
                self._readers, lambda: version.render(items, space=caller.name, caller=SHADOW)
            )
            return dict(zip(places, await version.score(prepared), strict=True))
        except Overloaded:
            self.skipped += 1
            return {}
        except Exception as error:  # any: finding these is what a release is for
            logger.warning("%d items cannot be scored by the candidate: %s", len(places), error)
            if len(places) == 1:
                return {places[0]: None}
            each = [await self._scored(version, answer, [place], caller) for place in places]
            return {place: score for one in each for place, score in one.items()}


def _pair(
    release: ReleaseInfo, policy_version: str, item: Item, scores: tuple[Score | None, Score | None]
) -> ScorePair:
    active, candidate = scores
    if active is None or candidate is None:
        return ScorePair(release.pk, release.stage, policy_version, None)
    content = item.content
    return ScorePair(
        release.pk,
        release.stage,
        policy_version,
        (active.reward, candidate.reward),
        tokens=max(active.tokens, candidate.tokens),
        steps=len(content.agent_steps) if isinstance(content, Trajectory) else 1,
        uncertain=("uncertain" in active.flags, "uncertain" in candidate.flags),
        outside=("out_of_distribution" in active.flags, "out_of_distribution" in candidate.flags),
    )
