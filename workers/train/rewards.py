"""Raw rewards of rendered trajectories, as training and validation compute them."""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from workers.models.cache import ChunkCache
from workers.models.step_encoder import StepEncoder, aggregate, by_tokens, collate, read_values
from workers.text import ChunkRenderer, Rendered

_AHEAD = 512  # chunks encoded between two looks at whether to stop


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


def encode_ahead(
    model: StepEncoder,
    renderer: ChunkRenderer,
    rendered: Sequence[Rendered],
    *,
    cache: ChunkCache,
    bfloat16: bool,
) -> Iterator[int]:
    """Fill `cache` with every chunk of `rendered`, always in the same groups; how many are done, now and then.

    Encoded when a batch first asks for it, a chunk would have other company in a run that is resumed than in one that
    was not stopped, and its embedding another rounding: their weights would drift apart.
    """
    framed = {renderer.framed(chunk) for one in rendered for chunk in one.chunks}
    chunks = sorted(framed, key=lambda ids: (len(ids), ids))
    for start in range(0, len(chunks), _AHEAD):
        model.embed(chunks[start : start + _AHEAD], cache=cache, bfloat16=bfloat16)
        yield min(start + _AHEAD, len(chunks))


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
