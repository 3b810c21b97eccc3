"""Which names the web process answers to, for what Django does not serve."""

from django.conf import settings
from django.http.request import split_domain_port, validate_host
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

_DETAIL = (
    "This server does not answer to the name in the Host header. Use its public address, or add the name to "
    "TOUCHSTONE_ALLOWED_HOSTS."
)


class KnownHosts:
    """Answers 400 to a name that is not of ALLOWED_HOSTS, as Django does. except_for: what probes ask for."""

    def __init__(self, app: ASGIApp, *, except_for: tuple[str, ...]) -> None:
        self.app, self.except_for = app, except_for

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] not in self.except_for and not _is_known(scope):
            document = {"type": "about:blank", "title": "Bad Request", "status": 400, "detail": _DETAIL}
            await JSONResponse(document, 400, media_type="application/problem+json")(scope, receive, send)
            return
        await self.app(scope, receive, send)


def _is_known(scope: Scope) -> bool:
    host = next((value for name, value in scope["headers"] if name == b"host"), b"").decode("latin-1")
    domain, _ = split_domain_port(host)
    allowed = settings.ALLOWED_HOSTS or [".localhost", "127.0.0.1", "[::1]"]
    return bool(domain) and validate_host(domain, allowed)
