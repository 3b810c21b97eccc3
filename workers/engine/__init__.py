"""The scoring engine: what turns items into rewards, many callers at once, one model thread.

Imports form a line: protocol <- cache <- batcher <- transforms, components <- versions.
"""

from workers.engine.batcher import Batcher, Overloaded
from workers.engine.protocol import Content, RawScore, Rendered, RewardModel
from workers.engine.versions import Score, ServedModel, Version

__all__ = [
    "Batcher",
    "Content",
    "Overloaded",
    "RawScore",
    "Rendered",
    "RewardModel",
    "Score",
    "ServedModel",
    "Version",
]
