"""Raw rewards of rendered trajectories, as training and validation compute them."""

from collections.abc import Sequence

import torch
from torch import Tensor

from workers.models.cache import ChunkCache
from workers.models.step_encoder import StepEncoder, aggregate, by_tokens, collate, read_values
from workers.text import ChunkRenderer, Rendered


def raw_rewards(
    model: StepEncoder,
    renderer: ChunkRenderer,
    batch: Sequence[Rendered],
    *,
    aggregation: str,
    cache: ChunkCache | None,
    bfloat16: bool,
) -> Tensor:
    """[trajectories, heads]. Gradients reach the encoder only without a cache."""
    packed = collate(batch, renderer)
    embeddings, _ = model.embed(packed.chunks, cache=cache, bfloat16=bfloat16)
    values = model.values(packed, embeddings)
    rows = [aggregate(*read_values(row, one), aggregation) for one, row in zip(batch, values, strict=True)]
    return torch.stack(rows)


@torch.no_grad()
def measured_rewards(
    model: StepEncoder,
    renderer: ChunkRenderer,
    rendered: Sequence[Rendered],
    *,
    aggregation: str,
    cache: ChunkCache | None,
    bfloat16: bool,
) -> Tensor:
    """[trajectories], the mean over heads, without dropout, in batches."""
    model.eval()
    out: list[Tensor] = []
    for batch in by_tokens(rendered):
        heads = raw_rewards(model, renderer, batch, aggregation=aggregation, cache=cache, bfloat16=bfloat16)
        out.append(heads.mean(-1).cpu())
    return torch.cat(out) if out else torch.empty(0)
