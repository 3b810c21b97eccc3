"""What `manage.py web` serves: static files, the reward API passed on, and Django for everything else."""

import os
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "apps.config.settings")

from django.conf import settings
from django.core.asgi import get_asgi_application
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

django: Any = get_asgi_application()

from apps.core.proxy import METHODS, forward, lifespan  # noqa: E402 - reads the settings


class Revalidated(StaticFiles):
    """Browsers ask each time whether a file changed: names carry no hash."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        response.headers.setdefault("Cache-Control", "no-cache")
        return response


async def alive(request: object) -> Response:
    return PlainTextResponse("ok")


application = Starlette(
    routes=[
        Route("/healthz", alive),
        Route("/api/v1/rewards{rest:path}", forward, methods=METHODS),
        Route("/compat{rest:path}", forward, methods=METHODS),
        Mount(settings.STATIC_URL.rstrip("/"), Revalidated(directory=settings.STATICFILES_DIRS[0])),
        Mount("", django),
    ],
    lifespan=lifespan,
)
