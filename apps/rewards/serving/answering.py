"""From the items of a request to their scores: by the active version, and by the candidate of an open release.

What the candidate answers is chosen by a hash of the policy run, else the group, else the prompt, never by request:
items that are compared with each other get one version. An item that names none of them stays with the active version.
What the candidate cannot score is scored by the active one.
"""

import asyncio
import hashlib
import logging
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

from apps.core.errors import TooManyRequests
from apps.rewards.prompts import prompt_of
from apps.rewards.serving.access import Caller, serving_version
from apps.rewards.serving.deployments import Deployment
from apps.rewards.serving.directory import ReleaseInfo
from apps.rewards.serving.problems import Problem
from apps.rewards.serving.requests import ScoreRequest, Tags, whole_items
from workers.engine import Overloaded, Prepared, Score, Version
from workers.errors import RewardError
from workers.schema import Item

logger = logging.getLogger(__name__)

CANARY = "canary"  # the flag of what the candidate answered


@dataclass(frozen=True, slots=True)
class Answer:
    """version: of the scores; the active one's where they are of both. by_candidate: places that the candidate
    answered. release: None where none is open, or one version was asked for."""

    version: int
    items: Sequence[Item]
    scores: list[Score]
    release: ReleaseInfo | None = None
    by_candidate: frozenset[int] = frozenset()

    def by_version(self) -> dict[int, list[int]]:
        """The places that each version answered."""
        if self.release is None or not self.by_candidate:
            return {self.version: list(range(len(self.scores)))}
        found: dict[int, list[int]] = {}
        for place in range(len(self.scores)):
            tried = place in self.by_candidate
            found.setdefault(self.release.revision.number if tried else self.version, []).append(place)
        return found


InReader = Callable[..., Any]


async def answer(
    deployment: Deployment,
    asked: ScoreRequest,
    caller: Caller,
    in_reader: InReader,
    charge: Callable[[int], None] = lambda tokens: None,
) -> Answer:
    """Raises Problem 409 for a version that is not served, 413, Overloaded, or RewardError at its place in the body.

    charge: told how many tokens are about to be scored; what it raises ends the request.
    """
    with ExitStack() as leases:
        active = leases.enter_context(serving_version(deployment).lease())
        tried = deployment.loaded_release
        if tried is not None:
            leases.enter_context(tried[1].lease())
        pinned = _pinned(deployment, active, tried, asked.version)
        work = _Work(asked, caller, in_reader, await in_reader(_items, asked, caller), charge)
        everything = range(len(work.items))
        if pinned is not None or tried is None:
            version = pinned or active
            scores = await work.scored(version, everything)
            return Answer(version.number, work.items, [scores[place] for place in everything])
        release, candidate = tried
        chosen = await in_reader(_chosen, release, asked, work.items)
        rest = [place for place in everything if place not in chosen]
        own, its = await asyncio.gather(
            work.scored(active, rest), work.tried(candidate, sorted(chosen), deployment.info.full_name)
        )
        if chosen and not its:
            own |= await work.scored(active, sorted(chosen))
        number = candidate.number if its and not own else active.number
        whole = own | its
        return Answer(number, work.items, [whole[place] for place in everything], release, frozenset(its))


@dataclass(frozen=True, slots=True)
class _Work:
    """The items of a request. in_reader: calls a function in a thread."""

    asked: ScoreRequest
    caller: Caller
    in_reader: InReader
    items: Sequence[Item]
    charge: Callable[[int], None]

    async def scored(self, version: Version, places: Sequence[int]) -> dict[int, Score]:
        """By place."""
        if self.items and not places:
            return {}
        with self.asked.placing(places):
            prepared = await self.in_reader(self._prepared, version, places)
            self.charge(prepared.tokens)
            scores = await version.score(prepared)
            if self.asked.compares and (chance := await version.preference(prepared)) is not None:
                first, second = scores
                scores = [replace(first, preferred=chance), replace(second, preferred=1 - chance)]
            return dict(zip(places, scores, strict=True))

    async def tried(self, candidate: Version, places: Sequence[int], endpoint: str) -> dict[int, Score]:
        """By place, flagged; nothing where it fails: the active version may know better, and errs for itself."""
        try:
            found = await self.scored(candidate, places)
        except (Overloaded, TooManyRequests):
            raise
        except Exception as error:
            logger.warning("%s@%s fails as a candidate: %s", endpoint, candidate.number, error)
            return {}
        return {place: replace(score, flags=(*score.flags, CANARY)) for place, score in found.items()}

    def _prepared(self, version: Version, places: Sequence[int]) -> Prepared:
        asked = self.asked
        if asked.writes and not version.writes:
            raise RewardError(
                "Nothing behind this endpoint writes critiques; deploy a model of the objective `generative`, or a "
                "judge, or ask for `score`."
            )
        prepared = version.render(
            [self.items[place] for place in places],
            space=self.caller.name,
            criteria=asked.criteria,
            writes=asked.writes,
            caller=self.caller.turn,
        )
        if asked.whole and (index := prepared.truncated) is not None:
            pointer = f"{asked.pointer}/{places[index]}" if asked.pointer else None
            raise Problem(
                "This is longer than the model reads; shorten it, or leave `truncate` out or true.",
                status=413,
                pointer=pointer,
            )
        return prepared


def _pinned(
    deployment: Deployment, active: Version, tried: tuple[ReleaseInfo, Version] | None, wanted: int | None
) -> Version | None:
    """A request may pin a revision; answered by another one it would be wrong. Raises Problem 409."""
    if wanted is None:
        return None
    served = {active.number: active} | ({tried[1].number: tried[1]} if tried else {})
    if wanted not in served:
        raise Problem(
            f"{deployment.info.name} serves version {active.number}, not {wanted}; leave `version` out to take "
            "what is active.",
            status=409,
            pointer="/version",
            active=active.number,
        )
    return served[wanted]


def _items(asked: ScoreRequest, caller: Caller) -> list[Item]:
    with asked.placing():
        return whole_items(asked.items, caller.project)


def _chosen(release: ReleaseInfo, asked: ScoreRequest, items: Sequence[Item]) -> frozenset[int]:
    """The places that the candidate answers. What is ranked together is answered together."""
    if release.share <= 0:
        return frozenset()
    keys = [key_of(asked.tags, item) for item in items]
    if asked.together:
        keys = [next((key for key in keys if key is not None), None)] * len(keys)
    return frozenset(
        place for place, key in enumerate(keys) if key is not None and draw(release, key) < release.share
    )


def key_of(tags: Tags, item: Item) -> bytes | None:
    """What an item has in common with those it is compared with: run, else group, else prompt."""
    if tags.run is not None:
        return b"run\0" + tags.run.encode(errors="surrogatepass")
    if item.group is not None:
        return b"group\0" + item.group.encode(errors="surrogatepass")
    prompt = prompt_of(item.content)
    return None if prompt is None else b"prompt\0" + prompt


def draw(release: ReleaseInfo, key: bytes) -> float:
    """A number in [0, 1) that is the same for the same key: a larger share keeps what a smaller one chose."""
    return place_of(key, salt=release.pk.to_bytes(16, "big"))


def place_of(key: bytes, *, salt: bytes) -> float:
    """A number in [0, 1), the same for the same key. salt: 16 bytes; with another one, another number."""
    digest = hashlib.blake2b(key, digest_size=8, salt=salt).digest()
    return (int.from_bytes(digest, "big") >> 11) / 2**53
