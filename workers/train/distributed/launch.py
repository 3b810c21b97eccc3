"""Several processes that train one model on one machine, started as torchrun would, and ended together.

torchrun itself answers every failure with status 1; ours says what happened (see `workers.train.__main__`).
"""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from types import FrameType

MEMORY_HALVED = 6  # the status of a process that ran out of memory and wrote down smaller micro batches
_GRACE = 10.0  # seconds the others may take once one has failed: what they wait for will never come


def train_together(command: Sequence[str], processes: int) -> int:
    """The status of the first that ended in another way than well, else 0. SIGTERM is passed on to all.

    Where memory ran out in one of them, all start again and resume, with micro batches of half the size.
    """
    children: list[subprocess.Popen[bytes]] = []
    asked: list[int] = []

    def pass_on(number: int, frame: FrameType | None) -> None:
        asked.append(number)
        for child in children:
            child.send_signal(number)

    signal.signal(signal.SIGTERM, pass_on)
    while True:
        children[:] = _start(command, processes)
        status = _until_all_ended(children)
        # Another process may end before this one is seen to, of the connection that was lost.
        if asked or all(child.returncode != MEMORY_HALVED for child in children):
            return status


def _start(command: Sequence[str], processes: int) -> list[subprocess.Popen[bytes]]:
    place = {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(_free_port()),
        "WORLD_SIZE": str(processes),
        "LOCAL_WORLD_SIZE": str(processes),
    }
    return [
        subprocess.Popen(command, env=os.environ | place | {"RANK": str(rank), "LOCAL_RANK": str(rank)})  # noqa: S603
        for rank in range(processes)
    ]


def _until_all_ended(children: Sequence[subprocess.Popen[bytes]]) -> int:
    status, since = 0, time.monotonic()
    while True:
        ended = [child.poll() for child in children]
        if status == 0:
            status = next((status for status in ended if status), 0)
            since = time.monotonic()
        if None not in ended:
            return status
        if status and time.monotonic() - since > _GRACE:
            for child in children:
                child.kill()
        time.sleep(0.05)


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
