"""What a folder of a text encoder says of itself: sentence-transformers' modules, or a plain BERT-type checkpoint.

Only JSON and the headers of safetensors are read, without torch, so that the web process can say what a folder holds.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from workers.errors import RewardError
from workers.schema.safetensors_header import tensor_shapes

READING_FILE = "encoder.json"  # of our artifacts: how its encoder is read, in one flat file
POOLING_WEIGHTS = "pooling.safetensors"  # of our artifacts: weights of the layers after pooling
_LAYER_KEYS = ("num_hidden_layers", "n_layers")
_MODULES, _ENCODER_SETTINGS = "modules.json", "sentence_bert_config.json"
_PROMPTS = "config_sentence_transformers.json"
_WEIGHTS, _INDEX = "model.safetensors", "model.safetensors.index.json"
POOLING_MODES = ("cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken")
# As earlier versions of sentence-transformers write them, in the order in which they are joined.
_FLAGS = {
    "cls": "pooling_mode_cls_token",
    "max": "pooling_mode_max_tokens",
    "mean": "pooling_mode_mean_tokens",
    "mean_sqrt_len_tokens": "pooling_mode_mean_sqrt_len_tokens",
    "weightedmean": "pooling_mode_weightedmean_tokens",
    "lasttoken": "pooling_mode_lasttoken",
}
ACTIVATIONS = ("Identity", "Tanh", "GELU", "ReLU", "SiLU", "Sigmoid")
# Positions are counted from the one after that of padding.
_OFFSET_TYPES = (
    *("roberta", "xlm-roberta", "xlm-roberta-xl", "roberta-prelayernorm", "camembert", "mpnet", "longformer"),
    *("data2vec-text", "ibert", "xmod"),
)
# Their classes in transformers read `input_ids` and `attention_mask` and return a state for each token.
TWO_SIDED_TYPES = (
    *_OFFSET_TYPES,
    *(
        "bert",
        "distilbert",
        "albert",
        "electra",
        "deberta",
        "deberta-v2",
        "modernbert",
        "nomic_bert",
        "eurobert",
    ),
    *(
        "ernie",
        "convbert",
        "megatron-bert",
        "rembert",
        "nystromformer",
        "squeezebert",
        "roformer",
        "mobilebert",
    ),
)
ONE_SIDED_TYPES = ("llama", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "gemma3_text", "phi3", "olmo2")
TokenPooling = Literal["cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingLayer:
    """One after pooling. source: of its weights, relative to the folder; empty for 'normalize'.

    dense: activation(W x + b), with x (projected, where the sizes differ) added where `residual`.
    """

    kind: Literal["dense", "layer_norm", "normalize"]
    inputs: int = 0
    outputs: int = 0
    bias: bool = True
    activation: str = "Identity"
    residual: bool = False
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderReading:
    """How a text becomes one vector: tokens in a frame, the encoder, pooling, more layers.

    pooling: joined in this order. prompts: by name, what stands before a text. prompt: what does here. in_pooling:
    whether its tokens are pooled too. longest: tokens of a text with frame and prompt, None: what the positions allow.
    """

    pooling: tuple[TokenPooling, ...] = ("mean",)
    layers: tuple[EmbeddingLayer, ...] = ()
    prompts: Mapping[str, str] | None = None
    prompt: str = ""
    in_pooling: bool = True
    longest: int | None = None
    lower_case: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether embeddings, once of unit length, are those of the encoder's states alone, without other settings."""
        only_scales = all(layer.kind == "normalize" for layer in self.layers)
        return self.pooling == ("mean",) and only_scales and self.in_pooling and not self.lower_case

    def with_prompt(self, wanted: str) -> "EncoderReading":
        """wanted: the name of one of its prompts, or the text of one; empty for its default."""
        return replace(self, prompt=(self.prompts or {}).get(wanted, wanted)) if wanted else self


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderDescription:
    """folder: as given. transformer: in it, the folder of config.json, tokenizer, weights. parameters: of the encoder
    alone. positions: the most tokens of an input, None without a limit."""

    folder: Path
    transformer: Path
    model_type: str
    architecture: str
    hidden: int
    layers: int
    intermediate: int
    heads: int
    parameters: int
    positions: int | None
    reading: EncoderReading
    weight_files: tuple[Path, ...]

    @property
    def longest(self) -> int | None:
        """Tokens of an input, frame and prompt included."""
        limits = [limit for limit in (self.positions, self.reading.longest) if limit is not None]
        return min(limits) if limits else None

    @property
    def embedding_size(self) -> int:
        sizes = [layer.outputs for layer in self.reading.layers if layer.kind == "dense"]
        return sizes[-1] if sizes else self.hidden * len(self.reading.pooling)

    @property
    def summary(self) -> str:
        """One sentence for people."""
        reading = self.reading
        parts = [f"{' and '.join(reading.pooling)} pooling"]
        parts += [
            f"dense {layer.inputs} to {layer.outputs}" for layer in reading.layers if layer.kind == "dense"
        ]
        parts.append(f"{self.embedding_size} numbers")
        if self.longest is not None:
            parts.append(f"at most {self.longest:,} tokens")
        if reading.prompts:
            parts.append(f"prompts {', '.join(reading.prompts)}")
        if reading.prompt:
            parts.append(f"default prompt {reading.prompt!r}")
        millions = self.parameters / 1e6
        size = f"{millions:,.0f} M" if millions >= 10 else f"{millions:.1f} M"
        return f"{self.architecture}, {size} parameters: {', '.join(parts)}."


def read_encoder_folder(folder: Path, *, is_model: bool = False) -> EncoderDescription:
    """Raises RewardError that says what of the folder cannot be used, and what to do.

    is_model: a model of ours, whose encoder may stand elsewhere (no weights are looked for), and may be of any type.
    """
    name = folder.name
    modules = _modules(folder)
    transformer = folder / modules[0][1] if modules else folder
    config = _object(transformer / "config.json", name)
    model_type = str(config.get("model_type", ""))
    if not is_model:
        _check_type(name, config, model_type)
    weights = () if is_model else weight_files(transformer, name)
    if not (transformer / "tokenizer.json").is_file():
        raise _refused(
            name,
            "has no tokenizer.json",
            "convert its tokenizer: AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER)",
        )
    hidden, layers = (_number(config, name, *keys) for keys in (("hidden_size", "dim"), _LAYER_KEYS))
    reading = _own_reading(folder)
    if reading is None:
        reading = _reading(folder, transformer, modules) if modules else EncoderReading()
    shapes = [shape for file in weights for shape in tensor_shapes(file).values()]
    return EncoderDescription(
        folder=folder,
        transformer=transformer,
        model_type=model_type,
        architecture=str(next(iter(config.get("architectures") or ()), model_type)),
        hidden=hidden,
        layers=layers,
        intermediate=int(config.get("intermediate_size") or config.get("hidden_dim") or 4 * hidden),
        heads=int(config.get("num_attention_heads") or config.get("n_heads") or 1),
        parameters=sum(_product(shape) for shape in shapes),
        positions=position_limit(config),
        reading=reading,
        weight_files=weights,
    )


def position_limit(config: Mapping[str, Any]) -> int | None:
    """The most tokens of an input, from a config.json."""
    limit = config.get("max_position_embeddings")
    if not isinstance(limit, int) or limit <= 0:
        return None
    if config.get("model_type") in _OFFSET_TYPES:
        padding = config.get("pad_token_id")
        return limit - 1 - (padding if isinstance(padding, int) else 1)
    return limit


def reading_to_json(reading: EncoderReading) -> dict[str, Any]:
    """Of READING_FILE."""
    return asdict(reading) | {"pooling": list(reading.pooling)}


def _own_reading(folder: Path) -> EncoderReading | None:
    """Of a model of ours, whose READING_FILE says all."""
    if not (folder / READING_FILE).is_file():
        return None
    values = _object(folder / READING_FILE, folder.name)
    try:
        layers = tuple(EmbeddingLayer(**layer) for layer in values["layers"])
        return EncoderReading(**(values | {"pooling": tuple(values["pooling"]), "layers": layers}))
    except (KeyError, TypeError) as error:
        raise _refused(
            folder.name, f"has a {READING_FILE} that cannot be read ({error})", "train it again"
        ) from None


def _modules(folder: Path) -> list[tuple[str, str]]:
    """(class, folder) of each module in order; none for a folder that sentence-transformers did not write."""
    path = folder / _MODULES
    if not path.is_file() or (folder / READING_FILE).is_file():
        return []
    try:
        listed = json.loads(path.read_text(encoding="utf-8"))
        found = [(str(each["type"]).rsplit(".", 1)[-1], str(each["path"])) for each in listed]
    except (ValueError, TypeError, KeyError) as error:
        raise _refused(
            folder.name, f"has a {_MODULES} that cannot be read ({error})", "save the model again"
        ) from None
    for _, inside in found:
        if PurePosixPath(inside).is_absolute() or ".." in PurePosixPath(inside).parts:
            raise _refused(
                folder.name, f"names the module {inside!r} outside of it in {_MODULES}", "save it again"
            )
    if not found or found[0][0] != "Transformer":
        first = found[0][0] if found else "none"
        raise _refused(
            folder.name,
            f"begins with the module {first!r}",
            "use a model whose first module is a Transformer: static and bag-of-words embeddings have no encoder",
        )
    return found


def _reading(folder: Path, transformer: Path, modules: list[tuple[str, str]]) -> EncoderReading:
    pooling: tuple[TokenPooling, ...] = ()
    in_pooling, layers = True, list[EmbeddingLayer]()
    for kind, inside in modules[1:]:
        values = _object(
            folder / inside / "config.json", folder.name, is_needed=kind not in ("Normalize", "Dropout")
        )
        _check_ports(folder.name, kind, values)
        if kind == "Pooling" and not pooling:
            pooling = _pooling(folder.name, values)
            in_pooling = bool(values.get("include_prompt", True))
        elif kind == "Normalize":
            layers.append(EmbeddingLayer(kind="normalize"))
        elif kind in ("Dense", "LayerNorm"):
            layers.append(_layer(folder, kind, inside, values))
        elif kind != "Dropout":  # nothing where nothing is trained
            raise _refused(
                folder.name,
                f"has the module {kind!r}",
                "read here are Transformer, one Pooling, Dense, LayerNorm, Normalize and Dropout",
            )
    if not pooling:
        raise _refused(
            folder.name, f"has no Pooling in {_MODULES}", "add one: what has a vector per token is not read"
        )
    settings = _object(transformer / _ENCODER_SETTINGS, folder.name, is_needed=False)
    listed = _object(folder / _PROMPTS, folder.name, is_needed=False)
    prompts = {str(key): str(text) for key, text in (listed.get("prompts") or {}).items() if text}
    longest = settings.get("max_seq_length") or _tokenizer_limit(transformer, folder.name)
    return EncoderReading(
        pooling=pooling,
        layers=tuple(layers),
        prompts=prompts,
        prompt=prompts.get(str(listed.get("default_prompt_name")), ""),
        in_pooling=in_pooling,
        longest=longest,
        lower_case=bool(settings.get("do_lower_case", False)),
    )


def _tokenizer_limit(transformer: Path, name: str) -> int | None:
    """As newer versions of sentence-transformers keep it; they write a very large number for none."""
    limit = _object(transformer / "tokenizer_config.json", name, is_needed=False).get("model_max_length")
    return int(limit) if isinstance(limit, int | float) and 0 < limit < 1e9 else None


def _pooling(name: str, values: Mapping[str, Any]) -> tuple[TokenPooling, ...]:
    given = values.get("pooling_mode")
    modes = (given,) if isinstance(given, str) else tuple(given or ())
    if not modes:
        modes = tuple(mode for mode, flag in _FLAGS.items() if values.get(flag)) or ("mean",)
    if unknown := [mode for mode in modes if mode not in POOLING_MODES]:
        raise _refused(name, f"has the pooling {unknown[0]!r}", f"read here are {', '.join(POOLING_MODES)}")
    return modes


def _layer(folder: Path, kind: str, inside: str, values: Mapping[str, Any]) -> EmbeddingLayer:
    source = f"{inside}/{_WEIGHTS}"
    if not (folder / source).is_file():
        raise _refused(
            folder.name,
            f"has no {source}",
            "load it with SentenceTransformer and save it again: pickled weights (.bin) are not read",
        )
    if kind == "LayerNorm":
        size = _number(values, folder.name, "dimension")
        return EmbeddingLayer(kind="layer_norm", inputs=size, outputs=size, source=source)
    activation = str(values.get("activation_function") or "torch.nn.modules.linear.Identity").rsplit(".", 1)[
        -1
    ]
    if activation not in ACTIVATIONS:
        raise _refused(
            folder.name,
            f"has the activation {activation!r} in {inside}",
            f"read here are {', '.join(ACTIVATIONS)}",
        )
    return EmbeddingLayer(
        kind="dense",
        inputs=_number(values, folder.name, "in_features"),
        outputs=_number(values, folder.name, "out_features"),
        bias=bool(values.get("bias", True)),
        activation=activation,
        residual=bool(values.get("use_residual", False)),
        source=source,
    )


def _check_ports(name: str, kind: str, values: Mapping[str, Any]) -> None:
    for key in ("module_input_name", "module_output_name"):
        if values.get(key) not in (None, "sentence_embedding"):
            raise _refused(
                name,
                f"has a {kind} on {values[key]!r}",
                "only modules on the embedding of a text are read, not those on tokens",
            )


def _check_type(name: str, config: Mapping[str, Any], model_type: str) -> None:
    if model_type in (*TWO_SIDED_TYPES, *ONE_SIDED_TYPES):
        return  # transformers' own class is used, whatever code an `auto_map` names
    if config.get("auto_map"):
        raise _refused(
            name,
            f"needs the code of its folder (auto_map in config.json, model type {model_type!r})",
            "it is never run; choose a model that transformers has a class for",
        )
    raise _refused(
        name,
        f"has the model type {model_type!r}",
        f"read as encoders are {', '.join(sorted(TWO_SIDED_TYPES))}, and with their last token "
        f"{', '.join(ONE_SIDED_TYPES)}",
    )


def weight_files(folder: Path, name: str) -> tuple[Path, ...]:
    """Of an encoder: one file, or its shards. name: for the error."""
    if (folder / _WEIGHTS).is_file():
        return (folder / _WEIGHTS,)
    if (folder / _INDEX).is_file():
        shards = sorted({str(file) for file in _object(folder / _INDEX, name).get("weight_map", {}).values()})
        files = [folder / shard for shard in shards if Path(shard).name == shard]
        missing = [file.name for file in files if not file.is_file()]
        if shards and len(files) == len(shards) and not missing:
            return tuple(files)
        raise _refused(name, f"lacks {', '.join(missing) or 'shards'} of {_INDEX}", "copy the whole folder")
    if any(folder.glob("*.bin")) or any(folder.glob("*.pt")):
        raise _refused(
            name,
            "has pickled weights (.bin), which are never read",
            "convert them: AutoModel.from_pretrained(FOLDER).save_pretrained(FOLDER) writes model.safetensors",
        )
    raise _refused(name, f"has no {_WEIGHTS}", "save_pretrained writes it")


def _object(path: Path, name: str, *, is_needed: bool = True) -> dict[str, Any]:
    if not path.is_file():
        if is_needed:
            raise _refused(
                name, f"has no {path.name}", "give 'embedded', or a folder of an encoder that has it"
            )
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise _refused(name, f"has a {path.name} that is not JSON ({error})", "copy the file again") from None
    if not isinstance(found, dict):
        raise _refused(name, f"has a {path.name} that is no JSON object", "copy the file again")
    return found


def _number(config: Mapping[str, Any], name: str, *keys: str) -> int:
    for key in keys:
        if isinstance(found := config.get(key), int) and found > 0:
            return found
    raise _refused(name, f"has no {keys[0]} in its config.json", "use a text encoder")


def _product(shape: tuple[int, ...]) -> int:
    product = 1
    for size in shape:
        product *= size
    return product


def _refused(name: str, what: str, fix: str) -> RewardError:
    return RewardError(f"The encoder folder {name} {what}; {fix}.", pointer="/encoder")
