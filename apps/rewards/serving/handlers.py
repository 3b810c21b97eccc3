"""The reward API: score, compare, rank, what is deployed; and OpenRLHF's protocol over the same path."""

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from apps.rewards.serving.access import (
    Caller,
    caller_of,
    check_version,
    deployment_for,
    serving_version,
)
from apps.rewards.serving.body import read_body
from apps.rewards.serving.deployments import Deployment
from apps.rewards.serving.describe import describe_deployment
from apps.rewards.serving.openrlhf import logistic, parse_openrlhf
from apps.rewards.serving.openrlhf import reply as openrlhf_reply
from apps.rewards.serving.problems import Problem
from apps.rewards.serving.requests import ScoreRequest, contents_of, parse_score
from apps.rewards.serving.state import State
from workers.engine import Score, Version
from workers.errors import InvalidRecord, RewardError

logger = logging.getLogger("touchstone.rewards")
Parse = Callable[[bytes, Mapping[str, str]], ScoreRequest]


@dataclass(frozen=True, slots=True)
class Scored:
    endpoint: str
    version: int
    asked: ScoreRequest
    scores: list[Score]
    seconds: float

    def head(self) -> dict[str, Any]:
        return {"endpoint": self.endpoint, "version": self.version}

    def results(self) -> list[dict[str, Any]]:
        return [self._result(score) for score in self.scores]

    def usage(self) -> dict[str, Any]:
        return {
            "inputs": len(self.scores),
            "tokens": sum(score.tokens for score in self.scores),
            "cached_tokens": sum(score.cached_tokens for score in self.scores),
            "milliseconds": round(self.seconds * 1000, 1),
        }

    def _result(self, score: Score) -> dict[str, Any]:
        steps = [{"agent_step": index, "reward": reward} for index, reward in enumerate(score.steps)]
        return {
            "reward": score.reward,
            "raw": score.raw,
            "baseline": score.baseline,
            "std": score.std if self.asked.uncertainty else None,
            "steps": steps if self.asked.steps else None,
            "criteria": None,
            "components": score.components,
            "flags": score.flags,
            "tokens": score.tokens,
            "cached_tokens": score.cached_tokens,
        }


async def score(request: Request) -> Response:
    scored = await _scored(request, parse_score)
    return _json(scored.head() | {"results": scored.results(), "usage": scored.usage()})


async def compare(request: Request) -> Response:
    """probability: sigma(raw_a - raw_b), Bradley-Terry. margin: reward_a - reward_b."""
    scored = await _scored(request, _parse_two)
    first, second = scored.scores
    decision = {"probability": logistic(first.raw - second.raw), "margin": first.reward - second.reward}
    return _json(scored.head() | decision | {"results": scored.results(), "usage": scored.usage()})


async def rank(request: Request) -> Response:
    """order: places of the inputs, best first, equal ones as they came. rewards: as the inputs came."""
    scored = await _scored(request, parse_score)
    rewards = [one.reward for one in scored.scores]
    order = sorted(range(len(rewards)), key=lambda index: -rewards[index])
    ranked = {"order": order, "rewards": rewards, "results": scored.results()}
    return _json(scored.head() | ranked | {"usage": scored.usage()})


async def openrlhf(request: Request) -> Response:
    scored = await _scored(request, parse_openrlhf, pointer="/query", query_key=True)
    return _json(openrlhf_reply(scored.scores))


async def describe(request: Request) -> Response:
    _, deployment = _find(request)
    return _json(describe_deployment(deployment))


def _find(request: Request, *, query_key: bool = False) -> tuple[Caller, Deployment]:
    state: State = request.app.state.service
    if state.directory is None:
        raise Problem(
            "The reward service has not read the database yet.", status=503, headers={"Retry-After": "2"}
        )
    caller = caller_of(request, state.directory, query_key=query_key)
    return caller, deployment_for(caller, request.path_params["endpoint"], state.deployments)


async def _scored(
    request: Request, parse: Parse, *, pointer: str = "/inputs", query_key: bool = False
) -> Scored:
    started = time.perf_counter()
    state: State = request.app.state.service
    caller, deployment = _find(request, query_key=query_key)
    serving_version(deployment)  # refused before the body is read
    body = await read_body(request)
    with serving_version(deployment).lease() as version:

        def prepare() -> tuple[ScoreRequest, Any]:
            asked = parse(body, request.headers)
            check_version(deployment, version, asked.version)
            return asked, version.render(contents_of(asked.items, caller.project), pointer)

        asked, prepared = await state.in_reader(prepare)
        try:
            scores = await version.score(prepared)
        except RewardError as error:
            raise (error.at(pointer) if error.pointer else error) from None
        seconds = time.perf_counter() - started
        scored = Scored(deployment.info.name, version.number, asked, scores, seconds)
        _log(scored, caller, version)
        return scored


def _log(scored: Scored, caller: Caller, version: Version) -> None:
    tags, usage = scored.asked.tags, scored.usage()
    logger.info(
        "%s@%s inputs=%d tokens=%d cached=%d ms=%.1f caller=%s run=%s policy=%s",
        *(scored.endpoint, version.number, usage["inputs"], usage["tokens"], usage["cached_tokens"]),
        *(usage["milliseconds"], caller.name, tags.run, tags.policy_version),
    )


def _parse_two(body: bytes, headers: Mapping[str, str]) -> ScoreRequest:
    asked = parse_score(body, headers)
    if len(asked.items) != 2:
        raise InvalidRecord(f"compare takes two inputs, not {len(asked.items)}.", pointer="/inputs")
    return asked


def _json(document: dict[str, Any]) -> Response:
    return Response(msgspec.json.encode(document), media_type="application/json")
