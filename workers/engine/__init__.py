"""The scoring engine: what turns items into rewards, many callers at the same time, one model thread.

Imports form a line: protocol <- duplicate_cache, fair_order <- batcher <- composition, rules, judge_components
<- version_checks <- versions. A score is a ModelScore of each component, then an ItemScore.
"""

from workers.engine.batcher import Batcher, Overloaded
from workers.engine.composition import ItemScore
from workers.engine.judge_components import Ask, Opinion
from workers.engine.protocol import Content, ModelScore, RenderedInput, Scorer
from workers.engine.versions import Prepared, ServedModel, Verify, Version

__all__ = [
    "Ask",
    "Batcher",
    "Content",
    "ItemScore",
    "ModelScore",
    "Opinion",
    "Overloaded",
    "Prepared",
    "RenderedInput",
    "Scorer",
    "ServedModel",
    "Verify",
    "Version",
]
