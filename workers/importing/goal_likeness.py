"""Encoders of texts and pictures (CLIPModel, SiglipModel) as rewards: how much pictures are like a goal that a text
describes, after Rocamonde et al. 2023 (arXiv 2310.12921).

Nothing is trained, so what the reward means is up to the texts: try them on trajectories first, or have people compare
some and train on that.
"""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional
from transformers import AutoImageProcessor

from workers.errors import RewardError
from workers.importing.checkpoint import Checkpoint
from workers.importing.recognised import Recognised
from workers.importing.tokenizers import MOST_TOKENS, copy_tokenizer, write_config
from workers.importing.weights import NamedTensor, copy_tensors
from workers.memory import memory_bytes
from workers.models.artifact import LocalScorer
from workers.models.backbones.decoder import read_config
from workers.models.backbones.dual_encoder import DUAL_ENCODERS, pixel_settings
from workers.models.backbones.encoder import files_hash
from workers.models.backbones.goal_likeness import GoalLikeness
from workers.models.files import WEIGHTS
from workers.models.kinds import goal_likeness as kind
from workers.models.loaded import LoadedModel
from workers.models.transformers_loading import transformers_loading
from workers.schema.goal_likeness import DEFAULT_ALPHA, GoalTexts
from workers.schema.import_options import ImportOptions
from workers.text.pictures import PICTURE_TOKENS, Picture

TYPE = "goal-likeness"
OPTIONS = ("goal", "baseline", "alpha", "pictures")
_EXACT = 1e-4
_SHARE = 0.8  # of the memory of the machine


def recognise(checkpoint: Checkpoint, options: ImportOptions) -> Recognised | None:
    model_type = str(checkpoint.config.get("model_type"))
    architecture = DUAL_ENCODERS.get(model_type)
    if architecture is None or checkpoint.architecture != architecture.__name__:
        return None
    texts = goal_texts(options)
    texts.require_sense("/options")
    checkpoint.require_tokenizer()
    checkpoint.require_tensors(_shapes(checkpoint))
    side = pixel_settings(checkpoint.folder)["side"]
    return Recognised(
        type=TYPE,
        architecture=checkpoint.architecture,
        because=f"config.json names {checkpoint.architecture}, and the weights are all of its tensors",
        reward=_reward_words(texts),
        template=f"no text; each picture whole, as a square of {side} pixels (not cropped at its sides)",
        reads="after each agent step, on the newest picture up to the next one; "
        + ("the last one is the reward" if texts.pictures == "last" else "their mean is the reward"),
        parameters=checkpoint.parameters,
        bytes=checkpoint.bytes,
        max_tokens=options.max_tokens or MOST_TOKENS,
        licence=checkpoint.licence,
        notes=(
            f"At most {(options.max_tokens or MOST_TOKENS) // PICTURE_TOKENS} pictures of a trajectory are read, the "
            "latest.",
            "It has learnt from no one's comparisons: compare some trajectories, and train on it.",
        ),
    )


def goal_texts(options: ImportOptions) -> GoalTexts:
    alpha = options.alpha or (DEFAULT_ALPHA if options.baseline else 0.0)
    pictures: Any = options.pictures or "last"
    return GoalTexts(options.goal, options.baseline, alpha, pictures)


def convert(
    checkpoint: Checkpoint, found: Recognised, folder: Path, options: ImportOptions
) -> dict[str, Any]:
    names = [*_shapes(checkpoint)]
    copy_tensors([NamedTensor(name, checkpoint.tensors[name]) for name in names], folder / WEIGHTS)
    copy_tokenizer(checkpoint, folder)
    write_config(checkpoint.config, folder)
    encoder = pixel_settings(checkpoint.folder) | {"name": files_hash([folder / WEIGHTS])}
    text = {"max_tokens": found.max_tokens, "speakers": False}
    backbone = kind.unlearnt(folder, encoder, goal_texts(options), text["max_tokens"])
    part = kind.save_learnt(backbone, folder, encoder)
    aggregation, reward_from = backbone.scoring("value", "state")
    return part | {
        "objective": "bradley_terry",
        "aggregation": aggregation,
        "reward_from": reward_from,
        "criteria": {},
    }


def check(checkpoint: Checkpoint, scorer: LocalScorer, options: ImportOptions) -> dict[str, Any]:
    """Embeddings of pictures and texts against those of transformers' own forward pass and image processor."""
    needed, room = 8 * checkpoint.parameters, _SHARE * memory_bytes()
    if needed > room:
        return {
            "not_compared": f"two copies of the model need {needed / 1e9:.1f} GB, and there are {room / 1e9:.1f} GB"
        }
    assert isinstance(scorer, LoadedModel) and isinstance(scorer.model.backbone, GoalLikeness)
    backbone = scorer.model.backbone
    encoder = backbone.encoder
    pages = _pages(encoder.side)
    pictures = [Picture(str(place), encoder.side, None, page) for place, page in enumerate(pages)]
    texts = [text for text in (backbone.texts.goal, backbone.texts.baseline) if text]
    ours = torch.cat([encoder.picture_embeddings(pictures), encoder.text_embeddings(texts)]).cpu()
    with transformers_loading():
        processor: Any = AutoImageProcessor.from_pretrained(
            checkpoint.folder, local_files_only=True, trust_remote_code=False
        )
        model = DUAL_ENCODERS[checkpoint.config["model_type"]].from_pretrained(
            checkpoint.folder, local_files_only=True, use_safetensors=True, dtype=torch.float32
        )
    if checkpoint.config["model_type"] == "siglip":  # which reads the padding, and no mask of it
        tokens = encoder.tokenizer(
            texts, padding="max_length", max_length=encoder.longest_text, return_tensors="pt"
        )
        inputs = {"input_ids": tokens["input_ids"]}
    else:
        tokens = encoder.tokenizer(texts, padding=True, return_tensors="pt")
        inputs = {name: tokens[name] for name in ("input_ids", "attention_mask")}
    with torch.no_grad():
        out = model.eval()(**inputs, **processor(images=pages, return_tensors="pt"))
    theirs = functional.normalize(torch.cat([out.image_embeds, out.text_embeds]), dim=-1)
    largest = float((ours - theirs).abs().max())
    if not largest <= _EXACT:
        raise RewardError(
            f"{checkpoint.folder.name} embeds pictures or texts otherwise here than with its own code (by up to "
            f"{largest:.3g}): this version cannot import it exactly, so it is not imported."
        )
    return {"pictures": len(pages), "texts": len(texts), "largest_difference": largest}


def _pages(side: int) -> list[NDArray[np.uint8]]:
    """A grey page, a gradient and noise."""
    ramp = np.linspace(0, 255, side).astype(np.uint8)
    noise = np.random.default_rng(0).integers(0, 256, (side, side, 3), dtype=np.uint8)
    return [
        np.full((side, side, 3), 128, dtype=np.uint8),
        np.broadcast_to(ramp[:, None, None], (side, side, 3)).copy(),
        noise,
    ]


def _shapes(checkpoint: Checkpoint) -> dict[str, tuple[int, ...]]:
    config = read_config(checkpoint.folder)
    with transformers_loading(), torch.device("meta"):
        model = DUAL_ENCODERS[config.model_type](config)
    return {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}


def _reward_words(texts: GoalTexts) -> str:
    words = f"how much a picture is like {texts.goal!r}, -1 to 1"
    if not texts.baseline:
        return words + ": the cosine of the two embeddings"
    return (
        words
        + f", with {texts.alpha:g} of it measured along the direction from {texts.baseline!r} to the goal only"
    )
