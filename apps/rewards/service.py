"""The reward service: an ASGI application of its own, run by `manage.py rewards`."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import django
from django.apps import apps

if not apps.ready:  # under a bare `uvicorn apps.rewards.service:application`
    django.setup()

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from apps.core.security_headers import SecurityHeaders
from apps.rewards.serving import handlers
from apps.rewards.serving.context import RequestContext
from apps.rewards.serving.deployments import Load
from apps.rewards.serving.metrics import MEDIA_TYPE
from apps.rewards.serving.openapi import document
from apps.rewards.serving.problems import problem_response
from apps.rewards.serving.state import State, StoredModels, running_state
from apps.rewards.serving.wire import WIRES


def make_application(load: Load) -> Starlette:
    """load: an artifact's name to a model and its cache."""

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with running_state(load) as state:
            app.state.service = state
            yield

    return Starlette(
        routes=_routes(),
        lifespan=lifespan,
        middleware=[Middleware(RequestContext)],
        exception_handlers={HTTPException: _http_error},
    )


def _routes() -> list[BaseRoute]:
    base = "/api/v1/rewards/{endpoint}"
    post: list[tuple[str, handlers.Handler]] = [
        (f"{base}/score", handlers.score),
        (f"{base}/compare", handlers.compare),
        (f"{base}/rank", handlers.rank),
        (f"{base}/critique", handlers.critique),
        (f"{base}/advantages", handlers.advantages),
        ("/internal/dry-run", handlers.try_spec),
    ]
    get = [
        ("/api/v1/rewards/openapi.json", _openapi),
        (f"{base}/", handlers.describe),
        (base, handlers.describe),
        ("/healthz", _healthz),
        ("/readyz", _readyz),
        ("/metrics", _metrics),
    ]
    return [
        *(Route(path, handler, methods=["POST"]) for path, handler in post),
        *(Route(wire.path, handlers.wired(wire), methods=[*wire.methods]) for wire in WIRES),
        *(Route(path, handler, methods=["GET"]) for path, handler in get),
    ]


async def _healthz(request: Request) -> Response:
    return JSONResponse({"status": "ok"})


async def _readyz(request: Request) -> Response:
    """Counts only: the names of endpoints are their projects' business."""
    state: State = request.app.state.service
    all_of_them = list(state.deployments.by_key.values())
    document: dict[str, Any] = {
        "status": "ready" if state.is_ready else "starting",
        "database": "ok" if state.watcher.unreachable_since is None else "unreachable",
        "endpoints": {
            "served": sum(one.version is not None for one in all_of_them),
            "loading": sum(one.active.loading is not None for one in all_of_them),
            "failed": sum(one.failure is not None for one in all_of_them),
        },
    }
    return JSONResponse(document, 200 if state.is_ready else 503)


async def _openapi(request: Request) -> Response:
    return JSONResponse(document())


async def _metrics(request: Request) -> Response:
    """For Prometheus. Not proxied: it is read at the service's own port."""
    state: State = request.app.state.service
    return Response(state.metrics.shown(), media_type=MEDIA_TYPE)


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    detail = {
        404: f"There is no {request.url.path} here; see /api/v1/docs.",
        405: f"{request.url.path} does not take {request.method}.",
    }.get(error.status_code, error.detail)
    return problem_response(error.status_code, detail, headers=error.headers)


application = SecurityHeaders(make_application(StoredModels()))
