"""The reward API: score, compare, rank, what is deployed; and every wire protocol over the same path."""

import json
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from apps.core.errors import DomainError
from apps.core.http.parameter_names import LONGEST_NAME, unknown_parameter_message
from apps.rewards.serving.access import INTERNAL
from apps.rewards.serving.advantages import advantages_reply, parse_advantages
from apps.rewards.serving.deployments import Target
from apps.rewards.serving.describe import describe_deployment
from apps.rewards.serving.dry_run import dry_run
from apps.rewards.serving.guard import decide, guard_reply, parse_guard
from apps.rewards.serving.problems import Problem, status_of
from apps.rewards.serving.query_embeddings import embed_queries
from apps.rewards.serving.request_keys import QUERY_PARAMETERS
from apps.rewards.serving.request_log import RequestLog
from apps.rewards.serving.requests import ScoreRequest, parse_score, version_text
from apps.rewards.serving.response import ScoreResponse
from apps.rewards.serving.routing import answer
from apps.rewards.serving.run_versions import change_warning
from apps.rewards.serving.state import ServiceState
from apps.rewards.serving.wire import Wire
from apps.rewards.serving.wire.protocol import Parse, address_conditions
from workers.errors import InvalidRecord, RewardError
from workers.schema.logistic import logistic

_LONGEST_FLAGS, _OTHERS = 2000, ",(others)"  # proxies refuse an answer whose headers pass 4 or 8 KB
Handler = Callable[[Request], Awaitable[Response]]


async def score(request: Request) -> Response:
    response = await _respond(request, parse_score)
    return _answer(response, response.to_json())


async def compare(request: Request) -> Response:
    """probability: sigma(raw_a - raw_b), or that of a model that compares. margin: reward_a - reward_b."""
    response = await _respond(request, _parse_pair)
    first, second = response.scores
    probability = logistic(first.raw - second.raw) if first.preferred is None else first.preferred
    document = response.to_json(probability=probability, margin=first.reward - second.reward)
    return _answer(response, document)


async def rank(request: Request) -> Response:
    """order: places of the inputs, best first, equal ones in their order. rewards: in the order of the inputs."""
    response = await _respond(request, _parse_ranking)
    rewards = response.rewards
    order = sorted(range(len(rewards)), key=lambda index: -rewards[index])
    return _answer(response, response.to_json(order=order, rewards=rewards))


async def critique(request: Request) -> Response:
    """As `score`, with the critiques of each model or judge that writes them."""
    response = await _respond(request, _parse_with_critiques)
    return _answer(response, response.to_json(with_critiques=True))


async def advantages(request: Request) -> Response:
    response = await _respond(request, parse_advantages)
    document = await _state(request).run_in_parser_pool(advantages_reply, response)
    return _answer(response, document)


async def guard(request: Request) -> Response:
    """Whether the agent may do what it proposes: allow, deny, or ask a person."""
    response = await _respond(request, parse_guard, finish=decide)
    return _answer(response, guard_reply(response))


async def try_spec(request: Request) -> Response:
    state = _state(request)
    results = await dry_run(request, state, await state.access.admit(request))
    return _json({"results": results})


async def embed_texts(request: Request) -> Response:
    state = _state(request)
    return _json({"vectors": await embed_queries(request, state, await state.access.admit(request))})


async def servers(request: Request) -> Response:
    """For the web process: the servers of the project, and the state of their replicas as this process sees it."""
    state = _state(request)
    caller = await state.access.admit(request)
    if caller.name != INTERNAL:
        raise Problem(f"There is no {request.url.path} here.", status=404)
    registry = state.access.registry
    named = set() if registry is None else registry.servers_named_by(caller.project)
    return _json({"servers": state.servers.states(caller.project, named)})


def flags_header(flags: Sequence[str]) -> str:
    """Some are named by fields that callers send: what has no room is `(others)`."""
    text = ",".join(flags)
    if len(text) <= _LONGEST_FLAGS:
        return text
    return text[: text.rindex(",", 0, _LONGEST_FLAGS - len(_OTHERS))] + _OTHERS


def wired(wire: Wire) -> Handler:
    """A handler that speaks a trainer's protocol. What its reply has no field for is in the headers."""

    async def handle(request: Request) -> Response:
        response = await _respond(request, wire.parse, query_key=True, finish=wire.finish)
        reply = _answer(response, wire.reply(response))
        if response.flags:
            reply.headers["X-Touchstone-Flags"] = flags_header(response.flags)
        return reply

    return handle


async def describe(request: Request) -> Response:
    access = _state(request).access
    caller = await access.admit(request)
    _refuse_unknown_parameters(request, ())
    return _json(describe_deployment(await access.deployment(caller, request.path_params["endpoint"])))


def _state(request: Request) -> ServiceState:
    state: ServiceState = request.app.state.service
    return state


async def _respond(
    request: Request,
    parse: Parse,
    *,
    query_key: bool = False,
    finish: Callable[[ScoreResponse], None] | None = None,
) -> ScoreResponse:
    """The life of a score request: admitted, read, routed to a version, scored, recorded.

    finish: called in a parser thread before anything is recorded.

    Once the endpoint is known the request is counted, whether it is answered or refused.
    """
    started, state = time.perf_counter(), _state(request)
    caller = await state.access.admit(request, query_key=query_key)
    if not query_key:  # clients of trainers send parameters of their own servers
        _refuse_unknown_parameters(request, QUERY_PARAMETERS)
    log = RequestLog(request, started, state.usage, state.metrics, caller)
    parsers = state.intake.parsers(caller)
    name = request.path_params.get("endpoint")
    try:
        with ExitStack() as leases:

            async def resolve(name: str) -> Target:
                log.deployment = await state.access.deployment(caller, name)
                return leases.enter_context(log.deployment.lease())

            target = None if name is None else await resolve(name)  # refused before the body is read
            asked = await state.intake.read(request, parse, caller, parsers)
            if query_key:
                asked = replace(asked, items=address_conditions(asked.items, request.query_params))
            asked = log.asked = _pinned(asked, request)
            if target is None:
                target = await resolve(asked.endpoint or "")
            charge = partial(state.gate.charge, caller.name, caller.limits)
            explainers = state.explainers.slot(caller)
            response = await answer(target, asked, caller, parsers, explainers, charge, started)
            if finish is not None:
                await parsers.run(finish, response)
    except (DomainError, RewardError) as error:
        log.refused(status_of(error))
        raise
    except Exception:
        log.refused(500)
        raise
    log.answered(response)
    if (run := response.request.tags.run) is not None:
        key = (target.deployment.info.pk, run)
        response.version_before = await state.run_versions.change(key, response.version)
    target.deployment.remember(response.sent_items, [score.tokens for score in response.scores])
    state.shadow.offer(target.deployment, response, caller)
    return response


def _refuse_unknown_parameters(request: Request, known: Collection[str]) -> None:
    unknown = next((name for name in request.query_params if name not in known), None)
    if unknown is not None:
        detail = unknown_parameter_message(unknown, known)
        raise Problem(detail, status=422, parameter=unknown[:LONGEST_NAME])


def _pinned(asked: ScoreRequest, request: Request) -> ScoreRequest:
    """The request with the version that its body, header or address names."""
    version = asked.version if asked.version is not None else asked.tags.version
    if version is None:
        version = version_text(request.query_params.get("version"), "`version` in the address")
    return replace(asked, version=version)


def _answer(response: ScoreResponse, document: Any) -> Response:
    """The reply, with the version that answered, and a warning where that changed within the policy run."""
    reply = _json(document)
    reply.headers["X-Touchstone-Version"] = str(response.version)
    run, before = response.request.tags.run, response.version_before
    if run is not None and before is not None:
        reply.headers["X-Touchstone-Warning"] = change_warning(run, before, response.version)
    return reply


def _parse_ranking(body: bytes, headers: Mapping[str, str]) -> ScoreRequest:
    return replace(parse_score(body, headers), same_version=True)


def _parse_with_critiques(body: bytes, headers: Mapping[str, str]) -> ScoreRequest:
    return replace(parse_score(body, headers), with_critiques=True)


def _parse_pair(body: bytes, headers: Mapping[str, str]) -> ScoreRequest:
    request = parse_score(body, headers)
    if len(request.items) != 2:
        raise InvalidRecord(f"compare takes two inputs, not {len(request.items)}.", pointer="/inputs")
    return replace(request, same_version=True, is_pair=True)


def _json(document: Any) -> Response:
    try:
        body = msgspec.json.encode(document)
    except UnicodeEncodeError:  # half a surrogate pair that a protocol has us send back
        body = json.dumps(document, allow_nan=False).encode()
    return Response(body, media_type="application/json")
