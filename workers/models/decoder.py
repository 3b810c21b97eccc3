"""The `decoder` backbone: any causal language model of transformers without its LM head, over prefix trees."""

import random
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel, AutoTokenizer, PreTrainedConfig, PreTrainedModel

from workers.errors import RewardError
from workers.models.backbone import Backbone
from workers.models.quiet import quietly
from workers.models.states import States, join
from workers.packing import Cost, Rows, additive_mask, build_forest, in_batches, mask_function, stack
from workers.text import ConversationRenderer, Tokens

ROW_TOKENS = 4096  # padded tokens in one forward pass on a CPU
_EXACT = 1e-4  # of the largest number in the states: what float32 may lose
# Models whose sliding windows are known to be right under a mask of ours.
_WINDOWED = {
    "gemma2",
    "gemma3_text",
    "mistral",
    "phi3",
    "qwen2",
    "qwen3",
    "qwen3_moe",
    "smollm3",
}


class Decoder(Backbone):
    """base: the model without its LM head. What items of a batch share at their beginnings is computed once."""

    kind = "decoder"

    def __init__(self, base: PreTrainedModel, renderer: ConversationRenderer) -> None:
        super().__init__()
        self.base = base
        self.renderer: ConversationRenderer = renderer
        config = text_config(base.config)
        self.width = int(config.hidden_size)
        self.windows = _windows(config)
        self._cost = _cost(base, config)
        self._adapters: list[Any] = []  # in a list, so that their weights are not registered twice

    def adapt(self, rank: int, alpha: float) -> None:
        """Low-rank adapters on every linear map (Hu et al. 2021); everything else is frozen."""
        from peft import LoraConfig, get_peft_model

        config = LoraConfig(
            r=rank,
            lora_alpha=alpha,  # type: ignore[arg-type]  # a float is as good
            target_modules="all-linear",
            lora_dropout=0.0,
            bias="none",
        )
        self._adapters = [get_peft_model(self.base, config)]

    def merged(self) -> PreTrainedModel:
        """The plain model, adapters added to its weights. They cannot be trained on after it."""
        if self._adapters:
            self.base = self._adapters.pop().merge_and_unload()
        return self.base

    @property
    def sharing(self) -> Cost:
        """What sharing costs: nothing where masked blocks are skipped."""
        return self._cost if self.device.type == "cpu" else Cost()

    def blocks(self) -> Sequence[nn.Module]:
        """The longest list of modules, which is that of the layers in every architecture there is."""
        lists = [module for module in self.base.modules() if isinstance(module, nn.ModuleList)]
        return [*max(lists, key=lambda one: len([*one]), default=nn.ModuleList())]

    @property
    def shares(self) -> bool:
        return True

    def states(self, batch: Sequence[Tokens], *, cache: Any = None) -> States:
        trees = build_forest([one.ids for one in batch], self.sharing)
        budget = ROW_TOKENS if self.device.type == "cpu" else max(map(len, trees))
        found: dict[int, Tensor] = {}
        for some in in_batches(trees, budget):
            rows = stack(some)
            hidden = self._hidden(rows)
            for place, (row, path) in rows.place.items():
                one = batch[place]
                reads = [read for read in one.reads if read is not None]
                at = torch.from_numpy(path[reads if one.start is None else [one.start, *reads]])
                found[place] = hidden[row, at.to(hidden.device)]
        parts = []
        for place, one in enumerate(batch):
            states = found[place].float()
            if one.start is None:  # nothing precedes the agent, so there is no state before it
                parts.append((states.new_zeros(self.width), states))
            else:
                parts.append((states[0], states[1:]))
        return join(parts, [0] * len(batch))

    def cost(self, batch: Sequence[Tokens]) -> int:
        return sum(map(len, build_forest([one.ids for one in batch], self.sharing)))

    def _hidden(self, rows: Rows) -> Tensor:
        """[rows, longest, width]"""
        device = self.device
        rows = rows.to(device)
        context: Any = (
            torch.autocast(device.type, dtype=torch.bfloat16) if self.in_bfloat16 else nullcontext()
        )
        with context:
            hidden: Tensor = self.base(
                input_ids=rows.ids, position_ids=rows.depth, attention_mask=self._masks(rows), use_cache=False
            ).last_hidden_state
        return hidden

    def _masks(self, rows: Rows) -> Any:
        """One mask for all layers, or one for every type of layer: a mask of ours switches the model's windows off."""
        kinds = {kind: self._mask(rows, window) for kind, window in self.windows.items()}
        return kinds if len(kinds) > 1 or "sliding_attention" in kinds else next(iter(kinds.values()))

    def _mask(self, rows: Rows, window: int | None) -> Any:
        if self.base.config._attn_implementation == "flex_attention":
            from torch.nn.attention.flex_attention import create_block_mask

            count, longest = rows.ids.shape
            return create_block_mask(
                mask_function(rows, window), count, None, longest, longest, device=rows.ids.device
            )
        dtype = (
            torch.bfloat16
            if self.in_bfloat16 and self.base.config._attn_implementation == "sdpa"
            else self.base.dtype
        )
        return additive_mask(rows, dtype, window)

    def require_exact(self) -> None:
        """Raises RewardError where a prefix tree does not give what separate passes give: some models mix tokens in
        ways that no attention mask governs."""
        dice = random.Random(0)  # noqa: S311 (not for secrets)
        size = text_config(self.base.config).vocab_size
        draw = [[dice.randrange(size) for _ in range(length)] for length in (5, 4, 6)]
        sequences = [draw[0] + draw[1], draw[0] + draw[2], draw[0]]
        items = [Tokens(tuple(ids), (len(ids) - 1,), None, False) for ids in sequences]
        try:
            with torch.no_grad():
                packed = self.states(items).flat
                alone = torch.cat([self.states([item]).flat for item in items])
        except (RuntimeError, ValueError, TypeError) as error:
            raise self._refused(str(error).split("\n")[0]) from error
        if not bool((packed - alone).abs().max() <= _EXACT * alone.abs().max()):
            raise self._refused(f"its states differ by {float((packed - alone).abs().max()):.2g}")

    def _refused(self, why: str) -> RewardError:
        kind = self.base.config.model_type
        return RewardError(
            f"a {kind} model cannot be packed exactly: {why}. Use a model of another architecture "
            f"(Llama, Qwen, Mistral, Gemma, GPT-2, Phi and OLMo types can).",
            pointer="/decoder",
        )


def load_base(folder: Path, *, device: str, dtype: torch.dtype = torch.float32) -> PreTrainedModel:
    """From local safetensors only; no remote code, no pickles."""
    options: dict[str, Any] = {"local_files_only": True, "use_safetensors": True, "trust_remote_code": False}
    with quietly():
        return _with_attention(
            device,
            lambda how: AutoModel.from_pretrained(folder, **options, dtype=dtype, attn_implementation=how),
        )


def empty_base(config: PreTrainedConfig, *, device: str) -> PreTrainedModel:
    """The architecture with weights still to be loaded."""
    return _with_attention(
        device, lambda how: AutoModel.from_config(config, trust_remote_code=False, attn_implementation=how)
    )


def decoder_folder(name: str) -> Path:
    """Raises RewardError where there is no causal language model in it."""
    folder = Path(name)
    missing = [file for file in ("config.json", "tokenizer.json") if not (folder / file).is_file()]
    if not list(folder.glob("*.safetensors")):
        missing.append("*.safetensors")
    if not name or missing:
        raise RewardError(
            f"there is no decoder in {name or 'the empty path'}: {', '.join(missing)} missing; give the folder of a "
            "causal language model as Hugging Face's save_pretrained writes it, with its tokenizer.",
            pointer="/decoder",
        )
    return folder


def read_config(folder: Path) -> PreTrainedConfig:
    try:
        config: PreTrainedConfig = AutoConfig.from_pretrained(
            folder, local_files_only=True, trust_remote_code=False
        )
    except (ValueError, KeyError, OSError) as error:
        raise RewardError(
            f"the configuration in {folder.name} is of no model that is known here: {error}",
            pointer="/decoder",
        ) from error
    return config


def conversation_renderer(folder: Path, *, max_tokens: int) -> ConversationRenderer:
    """Raises RewardError where the decoder has no room for so many tokens."""
    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    longest = getattr(text_config(read_config(folder)), "max_position_embeddings", None)
    if longest is not None and max_tokens > longest:
        raise RewardError(
            f"max_tokens = {max_tokens}, but this decoder reads at most {longest}.", pointer="/max_tokens"
        )
    return ConversationRenderer(tokenizer, max_tokens)


def text_config(config: PreTrainedConfig) -> PreTrainedConfig:
    return config.get_text_config(decoder=True)


def _with_attention(device: str, make: Any) -> PreTrainedModel:
    """FlexAttention on CUDA; on a CPU, where it has no backward, SDPA; eager where the model has neither."""
    ways = ["flex_attention", "sdpa", "eager"] if device.startswith("cuda") else ["sdpa", "eager"]
    for way in ways[:-1]:
        try:
            return make(way)
        except (ValueError, ImportError):
            continue  # what transformers raises where the architecture does not have it
    return make(ways[-1])


def _windows(config: PreTrainedConfig) -> dict[str, int | None]:
    """The attention window by type of layer; {"full_attention": None} where all layers see everything."""
    window = getattr(config, "sliding_window", None) if getattr(config, "use_sliding_window", True) else None
    kinds = set(getattr(config, "layer_types", None) or ())
    if unknown := kinds - {"full_attention", "sliding_attention"}:
        raise RewardError(
            f"a {config.model_type} model has layers of the kind {', '.join(sorted(unknown))}, which no attention mask "
            "governs; use a model whose layers all attend.",
            pointer="/decoder",
        )
    if window is None or kinds == {"full_attention"}:
        return {"full_attention": None}
    if config.model_type not in _WINDOWED:
        raise RewardError(
            f"{config.model_type} models have a sliding window ({window} tokens), and it is not known here whether it "
            f"would be kept; known are {', '.join(sorted(_WINDOWED))}.",
            pointer="/decoder",
        )
    if not kinds or config.model_type in ("mistral", "phi3", "qwen3_moe"):
        return {"all": window}  # one mask for all layers, and every layer has the window
    return {"full_attention": None, "sliding_attention": window}


def _cost(base: PreTrainedModel, config: PreTrainedConfig) -> Cost:
    """Multiply-adds of a token through the linear maps, and of an entry of the attention mask through all layers."""
    weights = sum(
        parameter.numel()
        for name, parameter in base.named_parameters()
        if parameter.ndim >= 2 and "embed" not in name and "wte" not in name and "wpe" not in name
    )
    return Cost(token=float(weights), pair=2.0 * config.hidden_size * config.num_hidden_layers)
