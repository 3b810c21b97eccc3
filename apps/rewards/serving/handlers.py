"""The reward API: score, compare, rank, what is deployed; and every wire protocol over the same path."""

import json
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from apps.core.errors import DomainError
from apps.rewards.serving.access import (
    Caller,
    UnknownEndpoint,
    UnknownKey,
    caller_of,
    deployment_for,
    serving_version,
)
from apps.rewards.serving.advantages import parse_advantages, reply_advantages
from apps.rewards.serving.answering import answer
from apps.rewards.serving.body import read_body
from apps.rewards.serving.calls import Call
from apps.rewards.serving.context import add_headers
from apps.rewards.serving.deployments import Deployment
from apps.rewards.serving.describe import describe_deployment
from apps.rewards.serving.dry_run import dry_run
from apps.rewards.serving.problems import Problem, status_of
from apps.rewards.serving.requests import ScoreRequest, parse_score
from apps.rewards.serving.scored import Scored
from apps.rewards.serving.state import State
from apps.rewards.serving.wire import Wire
from apps.rewards.serving.wire.protocol import Parse
from workers.errors import InvalidRecord, RewardError
from workers.schema.logistic import logistic

logger = logging.getLogger("touchstone.rewards")
Handler = Callable[[Request], Awaitable[Response]]


async def score(request: Request) -> Response:
    scored = await _scored(request, parse_score)
    return _json(scored.head() | {"results": scored.results(), "usage": scored.usage()})


async def compare(request: Request) -> Response:
    """probability: sigma(raw_a - raw_b), or what a model that compares says. margin: reward_a - reward_b."""
    scored = await _scored(request, _parse_two)
    first, second = scored.scores
    chance = logistic(first.raw - second.raw) if first.preferred is None else first.preferred
    decision = {"probability": chance, "margin": first.reward - second.reward}
    return _json(scored.head() | decision | {"results": scored.results(), "usage": scored.usage()})


async def rank(request: Request) -> Response:
    """order: places of the inputs, best first, equal ones as they came. rewards: as the inputs came."""
    scored = await _scored(request, _parse_together)
    rewards = scored.rewards
    order = sorted(range(len(rewards)), key=lambda index: -rewards[index])
    ranked = {"order": order, "rewards": rewards, "results": scored.results()}
    return _json(scored.head() | ranked | {"usage": scored.usage()})


async def critique(request: Request) -> Response:
    """As `score`, with what each model that writes has to say of every input."""
    scored = await _scored(request, _parse_writing)
    results = [
        result | {"critiques": score.critiques}
        for result, score in zip(scored.results(), scored.scores, strict=True)
    ]
    return _json(scored.head() | {"results": results, "usage": scored.usage()})


async def advantages(request: Request) -> Response:
    scored = await _scored(request, parse_advantages)
    return _json(await _state(request).in_reader(reply_advantages, scored))


async def try_spec(request: Request) -> Response:
    state = _state(request)
    scored = await dry_run(request, state, await _caller(request, state))
    return _json({"results": scored.results()})


def wired(wire: Wire) -> Handler:
    """A handler that speaks a trainer's protocol. What its reply has no field for is in the headers."""

    async def answer(request: Request) -> Response:
        scored = await _scored(request, wire.parse, query_key=True)
        response = _json(wire.reply(scored))
        response.headers["X-Touchstone-Version"] = str(scored.version)
        if scored.flags:
            response.headers["X-Touchstone-Flags"] = ",".join(scored.flags)
        return response

    return answer


async def describe(request: Request) -> Response:
    state = _state(request)
    caller = await _caller(request, state)
    return _json(describe_deployment(await _deployment(caller, request.path_params["endpoint"], state)))


def _state(request: Request) -> State:
    state: State = request.app.state.service
    return state


async def _caller(request: Request, state: State, *, query_key: bool = False) -> Caller:
    """Whoever may call, and has not called too often. Raises OverKeyLimit, and what `caller_of` does."""
    caller = await _known_caller(request, state, query_key=query_key)
    try:
        state.gate.admit(caller.name, caller.limits)
    finally:
        add_headers(request.scope, state.gate.headers(caller.name, caller.limits))
    return caller


async def _known_caller(request: Request, state: State, *, query_key: bool) -> Caller:
    if state.directory is None:
        raise Problem(
            "The reward service has not read the database yet.", status=503, headers={"Retry-After": "2"}
        )
    try:
        return caller_of(request, state.directory, query_key=query_key)
    except UnknownKey:
        await state.watcher.catch_up()
        return caller_of(request, state.directory, query_key=query_key)


async def _deployment(caller: Caller, name: str, state: State) -> Deployment:
    try:
        return deployment_for(caller, name, state.deployments)
    except UnknownEndpoint:
        await state.watcher.catch_up()
        return deployment_for(caller, name, state.deployments)


async def _scored(request: Request, parse: Parse, *, query_key: bool = False) -> Scored:
    """The answer, or an error that says why there is none; counted either way, once the endpoint is known."""
    call = Call(request, time.perf_counter(), _state(request))
    call.caller = caller = await _caller(request, call.state, query_key=query_key)
    try:
        return await _answered(request, parse, call, caller)
    except (DomainError, RewardError) as error:
        call.refused(status_of(error))
        raise
    except Exception:
        call.refused(500)
        raise


async def _answered(request: Request, parse: Parse, call: Call, caller: Caller) -> Scored:
    state = call.state
    named = request.path_params.get("endpoint")
    if named is not None:  # refused before the body is read
        call.deployment = await _deployment(caller, named, state)
        serving_version(call.deployment)
    in_reader = state.intake.turn(state.in_reader, caller)
    async with state.intake.room(caller) as room:
        body = await read_body(request, room.take)
        asked = call.asked = await in_reader.decode(parse, body, request.headers)
        del body
    deployment = call.deployment = await _deployment(caller, named or asked.endpoint or "", state)
    charge = partial(state.gate.charge, caller.name, caller.limits)
    answered = await answer(deployment, asked, caller, in_reader, charge)
    scored = Scored(
        deployment.info.name,
        answered.version,
        asked,
        answered.scores,
        time.perf_counter() - call.started,
    )
    call.answered(scored, answered)
    state.shadow.offer(deployment, asked, answered, caller)
    _log(scored, caller)
    return scored


def _log(scored: Scored, caller: Caller) -> None:
    tags, usage = scored.asked.tags, scored.usage()
    logger.info(
        "%s@%s inputs=%d tokens=%d cached=%d ms=%.1f caller=%s run=%s policy=%s",
        *(
            f"{caller.project}/{scored.endpoint}",
            scored.version,
            usage["inputs"],
            usage["tokens"],
            usage["cached_tokens"],
        ),
        *(usage["milliseconds"], caller.name, tags.run, tags.policy_version),
    )


def _parse_together(body: bytes, headers: Mapping[str, str]) -> ScoreRequest:
    return replace(parse_score(body, headers), together=True)


def _parse_writing(body: bytes, headers: Mapping[str, str]) -> ScoreRequest:
    return replace(parse_score(body, headers), writes=True)


def _parse_two(body: bytes, headers: Mapping[str, str]) -> ScoreRequest:
    asked = _parse_together(body, headers)
    if len(asked.items) != 2:
        raise InvalidRecord(f"compare takes two inputs, not {len(asked.items)}.", pointer="/inputs")
    return replace(asked, compares=True)


def _json(document: Any) -> Response:
    try:
        body = msgspec.json.encode(document)
    except UnicodeEncodeError:  # half a surrogate pair that a protocol has us send back
        body = json.dumps(document, allow_nan=False).encode()
    return Response(body, media_type="application/json")
