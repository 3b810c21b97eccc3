"""Reward models: making, saving, loading, scoring."""

from workers.models.artifact import (
    MANIFEST,
    Lineage,
    Scorer,
    is_generative,
    load,
    load_remote,
    load_scorer,
    save,
    save_generative,
    write_manifest,
)
from workers.models.backbones.base import Backbone
from workers.models.build import build, renderer_of
from workers.models.cache.embeddings import ChunkCache
from workers.models.cache.session_cache import SessionCache
from workers.models.loaded import LoadedModel, RawScore
from workers.models.remote import RemoteModel
from workers.models.reward_model import Outputs, RewardModel

__all__ = [
    "MANIFEST",
    "Backbone",
    "ChunkCache",
    "Lineage",
    "LoadedModel",
    "Outputs",
    "RawScore",
    "RemoteModel",
    "RewardModel",
    "Scorer",
    "SessionCache",
    "build",
    "is_generative",
    "load",
    "load_remote",
    "load_scorer",
    "renderer_of",
    "save",
    "save_generative",
    "write_manifest",
]
