"""The scoring engine: what turns items into rewards, many callers at once, one model thread.

Imports form a line: protocol <- cache, fair <- batcher <- transforms, rules, judging <- components <- versions.
"""

from workers.engine.batcher import Batcher, Overloaded
from workers.engine.judging import Ask, Opinion
from workers.engine.protocol import Content, RawScore, Rendered, Scorer
from workers.engine.versions import Prepared, Score, ServedModel, Verify, Version

__all__ = [
    "Ask",
    "Batcher",
    "Content",
    "Opinion",
    "Overloaded",
    "Prepared",
    "RawScore",
    "Rendered",
    "Score",
    "Scorer",
    "ServedModel",
    "Verify",
    "Version",
]
