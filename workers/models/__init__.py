"""Reward models: making, saving, loading, scoring."""

from workers.models.artifact import MANIFEST, Lineage, load, save, write_manifest
from workers.models.backbone import Backbone
from workers.models.build import build, renderer_of
from workers.models.cache import ChunkCache
from workers.models.loaded import LoadedModel, RawScore
from workers.models.reward_model import Outputs, RewardModel
from workers.models.sessions import SessionCache

__all__ = [
    "MANIFEST",
    "Backbone",
    "ChunkCache",
    "Lineage",
    "LoadedModel",
    "Outputs",
    "RawScore",
    "RewardModel",
    "SessionCache",
    "build",
    "load",
    "renderer_of",
    "save",
    "write_manifest",
]
