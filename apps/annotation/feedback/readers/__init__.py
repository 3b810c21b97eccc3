"""One module per feedback format. Adding one is a module with `read` and a line here."""

from collections.abc import Callable, Iterator
from typing import BinaryIO

from apps.annotation.feedback.incoming import Incoming
from apps.annotation.feedback.readers import comments, fine_grained_rlhf, hh, outcomes, pairs, pandalm
from workers.errors import InvalidRecord

Reader = Callable[[BinaryIO], Iterator[tuple[int, Incoming | InvalidRecord]]]

READERS: dict[str, Reader] = {
    "pairs": pairs.read,
    "comments": comments.read,
    "outcomes": outcomes.read,
    "hh": hh.read,
    "fine-grained-rlhf": fine_grained_rlhf.read,
    "pandalm": pandalm.read,
}
