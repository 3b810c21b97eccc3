"""The scoring engine: what turns items into rewards, many callers at the same time, one model thread.

Imports form a line: protocol <- duplicate_cache, fair_order <- batcher, item_score <- composition, groups, rules,
transforms, judge_components <- version_checks, prepared <- versions. A score is a ModelScore of each component, then
an ItemScore.
"""

from workers.engine.batcher import Batcher, Overloaded
from workers.engine.item_score import ItemScore
from workers.engine.judge_components import Ask, Opinion, PicturesSeen
from workers.engine.prepared import Prepared
from workers.engine.protocol import Content, ModelScore, RenderedInput, Scorer
from workers.engine.verifier_scores import VerifierScore, Verify
from workers.engine.versions import ServedModel, Version

__all__ = [
    "Ask",
    "Batcher",
    "Content",
    "ItemScore",
    "ModelScore",
    "Opinion",
    "Overloaded",
    "PicturesSeen",
    "Prepared",
    "RenderedInput",
    "Scorer",
    "ServedModel",
    "VerifierScore",
    "Verify",
    "Version",
]
