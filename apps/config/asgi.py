"""What `manage.py web` serves: static files, the reward API passed on, and Django for everything else."""

import os
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "apps.config.settings")

from django.conf import settings
from django.core.asgi import get_asgi_application
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

django: Any = get_asgi_application()

from apps.core.limits import BodyLimit  # noqa: E402
from apps.core.proxy import METHODS, forward, lifespan  # noqa: E402 - reads the settings
from apps.core.schema import database_is_ready  # noqa: E402


class Revalidated(StaticFiles):
    """Browsers ask each time whether a file changed: names carry no hash."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        response.headers.setdefault("Cache-Control", "no-cache")
        return response


async def alive(request: object) -> Response:
    return PlainTextResponse("ok")


async def ready(request: object) -> Response:
    """For load balancers: whether pages can be served. It says no more than that; `doctor` and the health page do."""
    is_ready = await run_in_threadpool(database_is_ready)
    document = {"status": "ready" if is_ready else "not ready"}
    return JSONResponse(document, 200 if is_ready else 503, None if is_ready else {"Retry-After": "3"})


application = Starlette(
    routes=[
        Route("/healthz", alive),
        Route("/readyz", ready),
        Route("/api/v1/rewards{rest:path}", forward, methods=METHODS),
        Route("/compat{rest:path}", forward, methods=METHODS),
        Mount(settings.STATIC_URL.rstrip("/"), Revalidated(directory=settings.STATICFILES_DIRS[0])),
        Mount("", BodyLimit(django, settings.MAX_UPLOAD_BYTES, "TOUCHSTONE_MAX_UPLOAD_MB")),
    ],
    lifespan=lifespan,
)
