"""`python -m workers.bulk DIR`: chunks of trajectories in on standard input, their results out on standard output.

DIR/config.json is a `BulkConfig`. A message in is a JSON array of trajectories, whose ids are whole numbers; the one
out is a JSON array of `BulkItem`, in order. The first message out, empty, says that the model is loaded. A chunk is
read and rendered while the one before it is computed. Status 0: the input has ended; 2: refused, with a sentence.
"""

import os
import queue
import sys
import threading
from pathlib import Path
from typing import BinaryIO

import msgspec

from workers.bulk.passages import PassageWork
from workers.bulk.scoring import ChunkWork, ReadChunk, open_work
from workers.bulk.verdicts import VerdictWork
from workers.job_cli import command
from workers.schema import Trajectory
from workers.schema.bulk_items import BulkConfig, read_messages, write_message

_AHEAD = 1  # chunks rendered and not yet computed


def run(folder: Path) -> None:
    with os.fdopen(os.dup(0), "rb") as source, os.fdopen(os.dup(1), "wb") as out:
        os.dup2(2, 1)  # what libraries print must not get between the messages
        config = msgspec.json.decode((folder / "config.json").read_bytes(), type=BulkConfig)
        work = _open(config)
        write_message(out, b"")
        serve(work, source, out)


def _open(config: BulkConfig) -> ChunkWork:
    """Raises RewardError where its model cannot be loaded, or do it."""
    if config.work == "index":
        return PassageWork(config.device)
    return VerdictWork(Path(config.folder)) if config.work == "induce" else open_work(config)


def serve(work: ChunkWork, source: BinaryIO, out: BinaryIO) -> None:
    """Until the input ends. Raises what reading or computing raised."""
    chunks: queue.Queue[ReadChunk | BaseException | None] = queue.Queue(_AHEAD)

    def read_ahead() -> None:
        decoder = msgspec.json.Decoder(list[Trajectory])
        try:
            for message in read_messages(source):
                chunks.put(work.read(decoder.decode(message)))
            chunks.put(None)
        except BaseException as error:
            chunks.put(error)

    threading.Thread(target=read_ahead, name="read-ahead", daemon=True).start()
    encoder = msgspec.json.Encoder()
    while (chunk := chunks.get()) is not None:
        if isinstance(chunk, BaseException):
            raise chunk
        write_message(out, encoder.encode(work.compute(chunk)))


if __name__ == "__main__":
    sys.exit(command("bulk", "Stored trajectories scored or embedded chunk after chunk.", run))
