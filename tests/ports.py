"""Ports for servers that are started in a moment."""

import contextlib
import random
import socket

# Below what systems hand out by themselves to whoever connects (Linux from 32768, others from 49152): such a port can
# be someone's by the time the server starts.
_PORTS = range(20_000, 32_000)
_given: set[int] = set()


def free_port() -> int:
    """A port no one listens on, another at each call. Raises OSError where a thousand are taken."""
    for _ in range(1_000):
        port = random.SystemRandom().choice(_PORTS)
        if port not in _given:
            with contextlib.suppress(OSError), socket.socket() as probe:
                probe.bind(("127.0.0.1", port))
                _given.add(port)
                return port
    raise OSError(f"no free port of 127.0.0.1 was found from {_PORTS.start} to {_PORTS.stop}")
