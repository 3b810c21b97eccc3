"""Attention under a dense mask of a tree, on a CPU: what no query of a block can see is not computed.

In a tree's layout a token sees nothing behind itself, so that a block of queries needs the keys up to its end only:
about half of the pairs. torch's own kernel skips them for plain causal masks, not under a mask of ours.
"""

from typing import Any

from torch import Tensor, cat
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface

BLOCKWISE = "touchstone_blockwise"
_BLOCK = 256  # queries


def blockwise(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    **more: Any,
) -> tuple[Tensor, None]:
    """query: [rows, heads, queries, width]; key, value: [rows, key heads, keys, width]; attention_mask: [rows, 1,
    queries, keys], additive; the last query is the last key. Returns [rows, queries, heads, width]."""
    if attention_mask is None:
        raise ValueError("blockwise attention needs the mask of a tree")
    groups = query.shape[1] // key.shape[1]
    if groups > 1:
        key, value = _repeated(key, groups), _repeated(value, groups)
    queries, keys = query.shape[2], key.shape[2]
    parts = []
    for start in range(0, queries, _BLOCK):
        end = min(start + _BLOCK, queries)
        seen = keys - queries + end
        parts.append(
            scaled_dot_product_attention(
                query[:, :, start:end],
                key[:, :, :seen],
                value[:, :, :seen],
                attn_mask=attention_mask[:, :, start:end, :seen],
                dropout_p=dropout,
                scale=scaling,
            )
        )
    whole = parts[0] if len(parts) == 1 else cat(parts, 2)
    return whole.transpose(1, 2).contiguous(), None


def _repeated(heads: Tensor, times: int) -> Tensor:
    """[rows, key heads, keys, width] -> [rows, heads, keys, width]"""
    rows, count, keys, width = heads.shape
    return (
        heads.unsqueeze(2).expand(rows, count, times, keys, width).reshape(rows, count * times, keys, width)
    )


AttentionInterface.register(BLOCKWISE, blockwise)
