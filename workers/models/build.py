"""A new model for a recipe, before any training."""

from torch import nn

from workers.models.encoder import chunk_renderer, encoder_folder, load_encoder
from workers.models.mixer import Mixer, MixerConfig
from workers.models.step_encoder import StepEncoder
from workers.schema.recipe import Recipe
from workers.text import ChunkRenderer


def build(recipe: Recipe, encoder: nn.Module | None = None) -> tuple[StepEncoder, ChunkRenderer]:
    """Its random weights come from torch's global generator. encoder: one loaded before, where it is not trained."""
    folder = encoder_folder(recipe.encoder)
    renderer = chunk_renderer(folder, chunk_tokens=recipe.chunk_tokens, max_tokens=recipe.max_tokens)
    encoder = load_encoder(folder) if encoder is None else encoder
    config = MixerConfig(
        hidden=int(encoder.config.hidden_size),  # type: ignore[union-attr,arg-type]
        width=recipe.width,
        layers=recipe.layers,
        attention_heads=recipe.attention_heads,
        ensemble=recipe.ensemble,
        grounding=recipe.grounding,
        dropout=recipe.dropout,
    )
    return StepEncoder(encoder, Mixer(config), frozen=not recipe.unfrozen), renderer
