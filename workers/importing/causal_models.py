"""The tensors of causal language models of transformers."""

import torch
from transformers import AutoModelForCausalLM
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from workers.errors import RewardError
from workers.importing.checkpoint import Checkpoint
from workers.importing.process_models import base_prefix, base_shapes, decoder_config
from workers.models.transformers_loading import transformers_loading


def require_causal(checkpoint: Checkpoint, why: str) -> None:
    """Raises RewardError where it is none, or its tensors are not all there."""
    if checkpoint.architecture not in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.values():
        raise RewardError(
            f"config.json of {checkpoint.folder.name} names {checkpoint.architecture or 'no architecture'}, and {why}; "
            "import it as another type."
        )
    checkpoint.require_tensors(causal_shapes(checkpoint))


def causal_shapes(checkpoint: Checkpoint) -> dict[str, tuple[int, ...]]:
    """By name, the shapes of its tensors; without an LM head where it is that of the embeddings."""
    config = decoder_config(checkpoint)
    with transformers_loading(), torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config, trust_remote_code=False)
    prefix = base_prefix(config)
    found = {prefix + name: shape for name, shape in base_shapes(config).items()}
    head = {
        name: tuple(tensor.shape)
        for name, tensor in model.state_dict().items()
        if not name.startswith(prefix)
    }
    is_tied = bool(getattr(config, "tie_word_embeddings", False))
    return found | {name: shape for name, shape in head.items() if not is_tied or name in checkpoint.tensors}
