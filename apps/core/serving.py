"""Running an ASGI application: ready when it listens, drained on SIGTERM."""

import socket

import uvicorn

from apps.core import readiness

DRAIN_SECONDS = 30


class _Server(uvicorn.Server):
    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            readiness.announce()


def serve(application: str, *, host: str, port: int) -> None:
    """Serve until SIGINT or SIGTERM; requests in flight are finished first. application: "module:name"."""
    config = uvicorn.Config(
        application,
        host=host,
        port=port,
        log_config=None,
        access_log=False,  # addresses may carry a key
        timeout_graceful_shutdown=DRAIN_SECONDS,
        server_header=False,
    )
    server = _Server(config)
    server.run()
    if not server.started:
        raise SystemExit(3)
