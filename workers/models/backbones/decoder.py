"""The `decoder` backbone: any causal language model of transformers without its LM head, over prefix trees."""

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel, AutoTokenizer, PreTrainedConfig, PreTrainedModel

from workers.errors import RewardError
from workers.models.backbones.attention import BLOCKWISE
from workers.models.backbones.base import Backbone, Placement
from workers.models.backbones.frozen_weights import LowRankAdapter, merge_adapters, nf4_options
from workers.models.backbones.last_layer import LastLayer
from workers.models.cache.kv_cache import Growing, growing_mask
from workers.models.cache.session_cache import Past, SessionCache, SessionSpace
from workers.models.states import States, join
from workers.models.transformers_loading import transformers_loading
from workers.packing import Cost, Rows, additive_mask, build_forest, in_batches, mask_function, stack
from workers.schema.conditions import Condition
from workers.text import ConversationRenderer, ReadingRule, Session, Tokens, WholeConversationRenderer

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
        self.windows = read_windows(config)
        self._cost = _cost(base, config)
        self._adapters: list[Any] = []  # in a list, so that their weights are not registered twice
        self.merged_adapter: LowRankAdapter | None = None
        self._last = LastLayer(self.blocks()[-1])

    @property
    def adapter_options(self) -> dict[str, Any]:
        """More of peft's LoraConfig."""
        return {}

    def adapt(self, rank: int, alpha: float) -> None:
        """Low-rank adapters on every linear map (Hu et al. 2021); everything else is frozen."""
        from peft import LoraConfig, get_peft_model

        config = LoraConfig(
            r=rank,
            lora_alpha=alpha,  # a float, where peft annotates an int
            target_modules="all-linear",
            lora_dropout=0.0,
            bias="none",
            **self.adapter_options,
        )
        self._adapters = [get_peft_model(self.base, config)]

    @contextmanager
    def without_adapters(self) -> Iterator[None]:
        """Inside of it the model is what it was before `adapt`."""
        (adapted,) = self._adapters
        with adapted.disable_adapter():
            yield

    def merged(self) -> PreTrainedModel:
        """The plain model, adapters added to its weights. They cannot be trained on after it, and are kept in
        `merged_adapter`.

        Weights of 4 bits become bfloat16, with the values that the adapters were trained on.
        """
        if self._adapters:
            adapted = self._adapters.pop()
            self.merged_adapter = LowRankAdapter.read(adapted)
            if self.base.dtype == torch.float32:
                self.base = adapted.merge_and_unload()
            else:
                merge_adapters(self.base)
        return self.base

    def finish_training(self) -> None:
        """Where merging rounds, before anything is scored: what is reported is then what is served."""
        if self._adapters and self.base.dtype != torch.float32:
            self.merged()

    @property
    def sharing(self) -> Cost:
        """What sharing costs: nothing where masked blocks are skipped."""
        return self._cost if self.device.type == "cpu" else Cost()

    def blocks(self) -> Sequence[nn.Module]:
        """The longest list of modules, which is that of the layers in every architecture there is."""
        lists = [module for module in self.base.modules() if isinstance(module, nn.ModuleList)]
        return [*max(lists, key=lambda list: len([*list]), default=nn.ModuleList())]

    @property
    def shares(self) -> bool:
        return True

    def states(self, batch: Sequence[Tokens], *, cache: SessionSpace | None = None) -> States:
        """cache: of sessions. Items with a session are computed separately, from where the session ended."""
        growing = [
            place for place, item in enumerate(batch) if item.session is not None and cache is not None
        ]
        growing = growing if self.grows else []
        alone = set(growing)
        found = self._packed(batch, [place for place in range(len(batch)) if place not in alone])
        cached = [0] * len(batch)
        for group in self._session_batches(growing):
            assert cache is not None
            for place, (states, known) in self._continued(batch, group, cache).items():
                found[place], cached[place] = states, known
        parts = []
        for place, item in enumerate(batch):
            states = found[place].float()
            if item.start is None:  # nothing precedes the agent, so there is no state before it
                parts.append((states.new_zeros(self.width), states))
            else:
                parts.append((states[0], states[1:]))
        return join(parts, cached)

    def _packed(self, batch: Sequence[Tokens], places: Sequence[int]) -> dict[int, Tensor]:
        """[places read, width] of each, computed in prefix trees."""
        if not places:
            return {}
        trees = build_forest([batch[place].ids for place in places], self.sharing)
        budget = ROW_TOKENS if self.device.type == "cpu" else max(map(len, trees))
        found: dict[int, Tensor] = {}
        for some in in_batches(trees, budget):
            rows = stack(some)
            reads = {
                number: (row, path[batch[places[number]].places])
                for number, (row, path) in rows.place.items()
            }
            with self._last.reading(reads.values(), rows.ids.shape, self.device):
                hidden = self._hidden(rows)
            for number, (row, at) in reads.items():
                found[places[number]] = hidden[row, torch.from_numpy(at).to(hidden.device)]
        return found

    def _session_batches(self, places: Sequence[int]) -> list[Sequence[int]]:
        """One forward pass for all; one for each on a CPU, where padding into a batch means copying."""
        if self.device.type == "cpu":
            return [[place] for place in places]
        return [places] if places else []

    def _continued(
        self, batch: Sequence[Tokens], places: Sequence[int], cache: SessionSpace
    ) -> dict[int, tuple[Tensor, int]]:
        """[places read, width] of each, and how many of its tokens were known."""
        ids = [np.asarray(batch[place].ids, dtype=np.int64) for place in places]
        sessions = [_session(batch[place]) for place in places]
        pasts = [
            cache.take(session, id, batch[place].places)
            for place, session, id in zip(places, sessions, ids, strict=True)
        ]
        known = [len(past.ids) for past in pasts]
        todo = [row for row in range(len(places)) if known[row] < len(ids[row])]
        if todo:
            self._extend(
                [pasts[row] for row in todo], [ids[row] for row in todo], [batch[places[row]] for row in todo]
            )
        found = {}
        for row, place in enumerate(places):
            found[place] = torch.stack([pasts[row].states[read] for read in batch[place].places]), known[row]
            cache.put(sessions[row], pasts[row])
        return found

    def _extend(self, pasts: Sequence[Past], ids: Sequence[Any], items: Sequence[Tokens]) -> None:
        starts = [len(past.ids) for past in pasts]
        new = [len(id) - start for id, start in zip(ids, starts, strict=True)]
        tokens = torch.zeros(len(pasts), max(new), dtype=torch.long)
        for row, (id, start) in enumerate(zip(ids, starts, strict=True)):
            tokens[row, : new[row]] = torch.from_numpy(id[start:])
        past = torch.tensor(starts, device=self.device)
        masks = {
            kind: growing_mask(past, max(new), self._mask_dtype, window)
            for kind, window in self.windows.items()
        }
        with self._precision():
            hidden = self.base(
                input_ids=tokens.to(self.device),
                position_ids=past.unsqueeze(1) + torch.arange(max(new), device=self.device),
                attention_mask=self._by_kind(masks),
                past_key_values=Growing(pasts, new, int(text_config(self.base.config).num_hidden_layers)),
                use_cache=True,
            ).last_hidden_state
        for row, (id, start, item) in enumerate(zip(ids, starts, items, strict=True)):
            pasts[row].ids = id
            # a clone: a view would keep all of the hidden states alive
            pasts[row].states |= {
                read: hidden[row, read - start].clone() for read in item.places if read >= start
            }

    @cached_property
    def grows(self) -> bool:
        """Whether a sequence continued from its past gives what it gives as a whole; tried once, on a small one."""
        if self.renderer.rewrites:
            return False
        dice = random.Random(1)  # noqa: S311 (not for secrets)
        ids = tuple(dice.randrange(text_config(self.base.config).vocab_size) for _ in range(18))
        cache = SessionCache(2**30).within()
        try:
            with torch.no_grad():
                for end in (7, 11, 18):
                    item = Tokens(ids[:end], (end - 1,), 3, False, Session("", ""))
                    grown, _ = self._continued([item], [0], cache)[0]
                whole = self._packed([item], [0])[0]
        except (
            RuntimeError,
            ValueError,
            TypeError,
            AttributeError,
        ):  # an architecture that keeps its past otherwise
            return False
        return bool((grown - whole).abs().max() <= self._tolerance * whole.abs().max())

    def cost(self, batch: Sequence[Tokens]) -> int:
        return sum(map(len, build_forest([item.ids for item in batch], self.sharing)))

    def work(self, batch: Sequence[Tokens]) -> float:
        """In multiply-adds. Attention computes about half of its mask (`attention.py`; masked blocks are skipped)."""
        trees = build_forest([item.ids for item in batch], self.sharing)
        return sum(self._cost.token * len(tree) + 0.5 * self._cost.pair * len(tree) ** 2 for tree in trees)

    def _hidden(self, rows: Rows) -> Tensor:
        """[rows, longest, width]"""
        device = self.device
        rows = rows.to(device)
        with self._precision():
            hidden: Tensor = self.base(
                input_ids=rows.ids, position_ids=rows.depth, attention_mask=self._masks(rows), use_cache=False
            ).last_hidden_state
        return hidden

    def _masks(self, rows: Rows) -> Any:
        """One mask for all layers, or one for every type of layer: a mask of ours switches the model's windows off."""
        return self._by_kind({kind: self._mask(rows, window) for kind, window in self.windows.items()})

    def _by_kind(self, masks: dict[str, Any]) -> Any:
        return masks if len(masks) > 1 or "sliding_attention" in masks else next(iter(masks.values()))

    def _precision(self) -> Any:
        return torch.autocast(self.device.type, dtype=torch.bfloat16) if self.in_bfloat16 else nullcontext()

    @property
    def _mask_dtype(self) -> torch.dtype:
        sdpa = self.base.config._attn_implementation in ("sdpa", BLOCKWISE)
        return torch.bfloat16 if self.in_bfloat16 and sdpa else self.base.dtype

    @property
    def _tolerance(self) -> float:
        """Of the largest state: what float32 may lose, and bfloat16."""
        return 0.1 if self.in_bfloat16 or self.base.dtype == torch.bfloat16 else _EXACT

    def _mask(self, rows: Rows, window: int | None) -> Any:
        if self.base.config._attn_implementation == "flex_attention":
            from torch.nn.attention.flex_attention import create_block_mask

            count, longest = rows.ids.shape
            return create_block_mask(
                mask_function(rows, window), count, None, longest, longest, device=rows.ids.device
            )
        return additive_mask(rows, self._mask_dtype, window)

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
        if not bool((packed - alone).abs().max() <= self._tolerance * alone.abs().max()):
            raise self._refused(f"its states differ by {float((packed - alone).abs().max()):.2g}")

    def _refused(self, why: str) -> RewardError:
        kind = self.base.config.model_type
        return RewardError(
            f"a {kind} model cannot be packed exactly: {why}. Use a model of another architecture "
            f"(Llama, Qwen, Mistral, Gemma, GPT-2, Phi and OLMo types can).",
            pointer="/decoder",
        )


def _session(tokens: Tokens) -> Session:
    assert tokens.session is not None
    return tokens.session


def load_base(
    folder: Path, *, device: str, dtype: torch.dtype = torch.float32, nf4: bool = False
) -> PreTrainedModel:
    """From local safetensors only; no remote code, no pickles.

    nf4: linear maps in 4 bits (NormalFloat with double quantisation: QLoRA, Dettmers et al. 2023), the rest in `dtype`.
    Raises RewardError without bitsandbytes.
    """
    options = nf4_options(device, dtype) if nf4 else {}
    return load_pretrained(AutoModel, folder, device=device, dtype=dtype, **options)[0]


def load_pretrained(
    auto_class: Any, folder: Path, *, device: str, dtype: torch.dtype, **options: Any
) -> tuple[Any, list[str]]:
    """A model of local safetensors, and the names of tensors that its files lack; no remote code, no pickles.

    auto_class: of transformers, AutoModel or one of its kind. options: more of its from_pretrained.
    """
    options |= {"local_files_only": True, "use_safetensors": True, "trust_remote_code": False}
    missing: list[str] = []

    def load(attention: str) -> PreTrainedModel:
        with transformers_loading():
            model, loaded = auto_class.from_pretrained(
                folder, **options, dtype=dtype, attn_implementation=attention, output_loading_info=True
            )
        missing[:] = sorted(loaded["missing_keys"])
        return model

    return _with_attention(device, load), missing


def empty_base(config: PreTrainedConfig, placement: Placement) -> PreTrainedModel:
    """The architecture with weights still to be loaded: in float32, or in bfloat16 where they were saved so and compute
    so, for half of the memory."""
    is_half = placement.precision == "bfloat16" and config.dtype == torch.bfloat16
    with transformers_loading():
        return _with_attention(
            placement.device,
            lambda how: AutoModel.from_config(
                config,
                trust_remote_code=False,
                attn_implementation=how,
                dtype=torch.bfloat16 if is_half else torch.float32,
            ),
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


def conversation_renderer(
    folder: Path,
    *,
    max_tokens: int,
    names_speakers: bool = False,
    rule: ReadingRule | None = None,
    conditioned: tuple[Condition, ...] = (),
) -> ConversationRenderer:
    """rule: of an imported model, which reads whole conversations as its own code does.

    Raises RewardError where the decoder has no room for so many tokens.
    """
    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    longest = getattr(text_config(read_config(folder)), "max_position_embeddings", None)
    if longest is not None and max_tokens > longest:
        raise RewardError(
            f"max_tokens = {max_tokens}, but this decoder reads at most {longest}.", pointer="/max_tokens"
        )
    if rule is not None:
        return WholeConversationRenderer(tokenizer, max_tokens, rule)
    return ConversationRenderer(tokenizer, max_tokens, names_speakers=names_speakers, conditioned=conditioned)


def text_config(config: PreTrainedConfig) -> PreTrainedConfig:
    return config.get_text_config(decoder=True)


def _with_attention(device: str, make: Any) -> PreTrainedModel:
    """FlexAttention on CUDA; on a CPU, where it has no backward, SDPA by blocks; eager where the model has neither."""
    ways = ["flex_attention", "sdpa", "eager"] if device.startswith("cuda") else ["sdpa", "eager"]
    for way in ways[:-1]:
        try:
            made = make(way)
        except (ValueError, ImportError):
            continue  # what transformers raises where the architecture does not have it
        if way == "sdpa" and not device.startswith("cuda"):
            made.config._attn_implementation = BLOCKWISE
        return made
    return make(ways[-1])


def read_windows(config: PreTrainedConfig) -> dict[str, int | None]:
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
