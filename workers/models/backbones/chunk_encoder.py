"""Embeddings of chunks by an encoder, each computed once where there is a cache."""

import hashlib
from array import array
from collections.abc import Iterator, Sequence
from typing import Protocol

import torch
from torch import Tensor, nn

from workers.models.backbones.encoder import encode
from workers.models.backbones.pooling import EmbeddingPooling

_AHEAD = 512  # chunks encoded between two checks for a stop


class EmbeddingCache(Protocol):
    """`ChunkCache`, or the part of one that belongs to a project."""

    def get(self, key: bytes) -> Tensor | None: ...
    def put(self, key: bytes, embedding: Tensor) -> None: ...


def embed_chunks(
    encoder: nn.Module,
    name: bytes,
    chunks: Sequence[tuple[int, ...]],
    *,
    pooling: EmbeddingPooling | None = None,
    cache: EmbeddingCache | None = None,
    bfloat16: bool = False,
) -> tuple[Tensor, set[int]]:
    """[chunks, size] float32, and which of them came from the cache. Gradients reach the encoder only without one.

    name: of the encoder and its pooling, in the cache's keys. chunks: framed token ids.
    """
    if cache is None:
        return encode(encoder, chunks, pooling=pooling, bfloat16=bfloat16), set()
    keys = [chunk_key(name, ids) for ids in chunks]
    found = {row: hit for row, key in enumerate(keys) if (hit := cache.get(key)) is not None}
    missing = [row for row in range(len(chunks)) if row not in found]
    device = next(encoder.parameters()).device
    hidden = hidden_size(encoder)
    out = torch.empty(len(chunks), hidden if pooling is None else pooling.size(hidden), device=device)
    if missing:
        with torch.no_grad():
            out[missing] = encode(
                encoder, [chunks[row] for row in missing], pooling=pooling, bfloat16=bfloat16
            )
        for row, embedding in zip(missing, out[missing].cpu(), strict=True):
            cache.put(keys[row], embedding)
    if found:
        out[list(found)] = torch.stack(list(found.values())).to(device)
    return out, set(found)


def embed_ahead(
    encoder: nn.Module,
    name: bytes,
    chunks: set[tuple[int, ...]],
    cache: EmbeddingCache,
    *,
    pooling: EmbeddingPooling | None = None,
    bfloat16: bool = False,
) -> Iterator[int]:
    """Fill the cache with every chunk, always in the same groups; how many are done, now and then.

    Encoded when a batch first asks for it, a chunk would have other company in a run that is resumed than in one that
    was not stopped, and its embedding another rounding: their weights would drift apart.
    """
    ordered = sorted(chunks, key=lambda ids: (len(ids), ids))
    for start in range(0, len(ordered), _AHEAD):
        group = ordered[start : start + _AHEAD]
        embed_chunks(encoder, name, group, pooling=pooling, cache=cache, bfloat16=bfloat16)
        yield min(start + _AHEAD, len(ordered))


def hidden_size(encoder: nn.Module) -> int:
    return int(encoder.config.hidden_size)  # type: ignore[union-attr,arg-type]


def chunk_key(name: bytes, ids: Sequence[int]) -> bytes:
    return hashlib.blake2b(name + array("q", ids).tobytes(), digest_size=16).digest()
