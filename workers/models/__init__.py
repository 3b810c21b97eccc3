"""Reward models: making, saving, loading, scoring."""

from workers.models.artifact import (
    MANIFEST,
    Lineage,
    LocalScorer,
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
from workers.models.loaded import LoadedModel
from workers.models.remote import RemoteModel
from workers.models.reward_model import Outputs, RewardModel
from workers.schema.model_score import ModelScore

__all__ = [
    "MANIFEST",
    "Backbone",
    "ChunkCache",
    "Lineage",
    "LoadedModel",
    "LocalScorer",
    "ModelScore",
    "Outputs",
    "RemoteModel",
    "RewardModel",
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
