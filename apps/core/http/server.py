"""Running an ASGI application: ready when it listens, drained on SIGTERM, bounded in what strangers may send."""

import asyncio
import functools
import gc
import socket
import sys
from dataclasses import replace
from typing import Any, cast

import uvicorn
from django.conf import settings

from apps.core.http.connection_limits import ConnectionLimits, Connections, most_connections, raise_open_files
from apps.core.http.guarded_protocol import GuardedProtocol
from apps.core.processes import readiness

DRAIN_SECONDS = 30
_TICKS_PER_SWEEP = 10  # of 0.1 s
# A request gives up the interpreter at every query, and waits so long to have it back from each thread that computes:
# with the default of 5 ms, four of them make every query of someone else's page take 20 ms.
_SWITCH_SECONDS = 0.0005


class Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, connections: Connections) -> None:
        super().__init__(config)
        self.connections = connections

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        # What was loaded by now stays: without it a collection, which no thread can interrupt, is much shorter.
        gc.collect()
        gc.freeze()
        if self.started:
            readiness.announce()

    async def on_tick(self, counter: int) -> bool:
        if counter % _TICKS_PER_SWEEP == 0:
            self.connections.sweep(asyncio.get_running_loop().time())
        return await super().on_tick(counter)


def make_server(application: Any, *, host: str, port: int, limits: ConnectionLimits) -> Server:
    """application: ASGI, or "module:name"."""
    connections = Connections(limits)
    config = uvicorn.Config(
        application,
        host=host,
        port=port,
        http=cast(type[asyncio.Protocol], functools.partial(GuardedProtocol, connections)),
        ws="none",  # nothing here speaks it
        log_config=None,
        access_log=False,  # addresses may carry a key
        proxy_headers=False,  # apps.core.http.client_address reads them
        timeout_graceful_shutdown=DRAIN_SECONDS,
        timeout_keep_alive=int(limits.idle_seconds),
        server_header=False,
    )
    return Server(config, connections)


def serve(application: str, *, host: str, port: int) -> None:
    """Serve until SIGINT or SIGTERM; requests in flight are finished first. application: "module:name"."""
    sys.setswitchinterval(_SWITCH_SECONDS)
    open_files = raise_open_files()
    limits = replace(
        ConnectionLimits(),
        connections=most_connections(settings.MAX_CONNECTIONS, open_files),
        per_address=settings.MAX_CONNECTIONS_PER_ADDRESS,
    )
    server = make_server(application, host=host, port=port, limits=limits)
    server.run()
    if not server.started:
        raise SystemExit(3)
