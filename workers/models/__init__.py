"""Reward models: making, saving, loading, scoring."""

from workers.models.artifact import MANIFEST, load, save, write_manifest
from workers.models.build import build
from workers.models.cache import ChunkCache
from workers.models.loaded import LoadedModel, RawScore
from workers.models.step_encoder import StepEncoder

__all__ = [
    "MANIFEST",
    "ChunkCache",
    "LoadedModel",
    "RawScore",
    "StepEncoder",
    "build",
    "load",
    "save",
    "write_manifest",
]
