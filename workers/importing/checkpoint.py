"""A public checkpoint: config.json, tokenizer and the headers of its safetensors files. No weight is loaded."""

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from workers.errors import RewardError
from workers.schema import parse_json
from workers.schema.decode import require_object
from workers.schema.patterns import TextPattern

CONFIG, INDEX, CARD, TEMPLATE = (
    "config.json",
    "model.safetensors.index.json",
    "README.md",
    "chat_template.jinja",
)
TOKENIZER, TOKENIZER_CONFIG = "tokenizer.json", "tokenizer_config.json"
COPIED = (TOKENIZER, "special_tokens_map.json", "added_tokens.json")
_BYTES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U8": 1, "BOOL": 1}
_MOST_HEADER, _MOST_HEADERS = 2**27, 2**28  # bytes of one file's; of all
_LAYERS = TextPattern(r"^(num|n)_(\w+_)?(layers?|blocks)$|^(encoder|decoder)_layers$")
_PARTS = TextPattern(r"^num_labels$|(^|_)experts$|^num_(\w+_)?(heads|codebooks)$|^n_heads?$")
_FLOATS = ("F32", "F16", "BF16", "F64")
# Buffers that older versions of transformers saved, and that are computed from the configuration.
_COMPUTED = ("rotary_emb.inv_freq", ".attn.bias", ".attn.masked_bias", "embeddings.position_ids")
_PICKLED = (".bin", ".pt", ".pth", ".ckpt")
TO_SAFETENSORS = (
    "on a machine where you trust the file, load it with transformers and write it again: "
    "AutoModelForSequenceClassification.from_pretrained(FOLDER).save_pretrained(NEW)"
)


@dataclass(frozen=True, slots=True)
class TensorHeader:
    """Where a tensor stands. begin, end: its bytes in the file."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    path: Path
    begin: int
    end: int

    @property
    def parameters(self) -> int:
        return math.prod(self.shape)


class Checkpoint:
    """A folder as `save_pretrained` writes it. Raises RewardError naming the file that is missing or cannot be used."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        if not folder.is_dir():
            raise RewardError(f"{folder} is not a folder; name the folder of a checkpoint.")
        self.config = self._json(CONFIG, required=True)
        self._refuse_what_cannot_be_read()
        self._require_small_headers()
        self.tensors = {tensor.name: tensor for tensor in self._headers()}
        if other := sorted({tensor.dtype for tensor in self.tensors.values()} - set(_BYTES)):
            raise RewardError(
                f"the weights in {folder.name} are {', '.join(other)}; import float32, float16 or bfloat16 weights."
            )

        self._require_plausible(self.config)

    @cached_property
    def architecture(self) -> str:
        names = self.config.get("architectures")
        return str(names[0]) if isinstance(names, list) and names else ""

    @cached_property
    def tokenizer_config(self) -> dict[str, Any]:
        return self._json(TOKENIZER_CONFIG)

    @property
    def parameters(self) -> int:
        return sum(tensor.parameters for tensor in self.tensors.values())

    @property
    def bytes(self) -> int:
        return sum(tensor.end - tensor.begin for tensor in self.tensors.values())

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The names of the outputs of a classifier, in order; LABEL_0, ... where the configuration names none."""
        named = self.config.get("id2label")
        if isinstance(named, dict) and named:
            return tuple(str(named[key]) for key in sorted(named, key=int))
        count = self.config.get("num_labels")
        return tuple(f"LABEL_{number}" for number in range(count if isinstance(count, int) else 2))

    @cached_property
    def licence(self) -> str:
        """As the front matter of the card says; empty where it says nothing."""
        path = self.folder / CARD
        if not path.is_file():
            return ""
        lines = path.read_text(encoding="utf-8", errors="replace").split("\n", 400)
        if lines[0].strip() != "---":
            return ""
        front = [line.strip() for line in lines[1 : lines.index("---", 1) if "---" in lines[1:] else 1]]
        found = {
            key.strip(): value.strip(" '\"") for key, _, value in (line.partition(":") for line in front)
        }
        named = found.get("license_name") if found.get("license") == "other" else None
        return (named or found.get("license", ""))[:100]

    @property
    def chat_template(self) -> str:
        """Of the tokenizer's files; empty where they have none. Raises RewardError where there are several."""
        path = self.folder / TEMPLATE
        if path.is_file():
            return path.read_text(encoding="utf-8")
        older = self._json("chat_template.json").get("chat_template")
        found = self.tokenizer_config.get("chat_template") or older or ""
        if isinstance(found, list):
            named = {each.get("name"): each.get("template") for each in found if isinstance(each, dict)}
            if "default" not in named:
                raise RewardError(
                    f"{self.folder.name} has the chat templates {', '.join(map(str, named))} and no default one; save "
                    f"the one to use as {TEMPLATE} in the folder."
                )
            found = named["default"]
        return str(found)

    def require_tokenizer(self) -> None:
        if not (self.folder / TOKENIZER).is_file():
            raise RewardError(
                f"{self.folder.name} has no {TOKENIZER}; write one: "
                "AutoTokenizer.from_pretrained(FOLDER, use_fast=True).save_pretrained(FOLDER)."
            )

    def require_tensors(self, wanted: Mapping[str, tuple[int, ...]], *, optional: Iterable[str] = ()) -> None:
        """Raises RewardError naming what is missing, unexpected or of another shape. optional: may be absent."""
        absent = [name for name in wanted if name not in self.tensors and name not in set(optional)]
        unexpected = [name for name in self.tensors if name not in wanted and not name.endswith(_COMPUTED)]
        shapes = [
            f"{name} is {[*self.tensors[name].shape]}, not {[*shape]}"
            for name, shape in wanted.items()
            if name in self.tensors and self.tensors[name].shape != tuple(shape)
        ]
        parts = [
            f"{what}: {', '.join(names[:5])}{f' and {len(names) - 5} more' if len(names) > 5 else ''}"
            for what, names in (("missing", absent), ("unexpected", unexpected), ("other shapes", shapes))
            if names
        ]
        if parts:
            raise RewardError(
                f"the weights in {self.folder.name} are not those of a {self.architecture} ({'; '.join(parts)}). "
                "Nothing is left out or initialised: import a checkpoint whose weights fit its config.json."
            )

    def _json(self, name: str, *, required: bool = False) -> dict[str, Any]:
        path = self.folder / name
        if not path.is_file():
            if required:
                raise RewardError(f"{self.folder.name} has no {name}; name the folder of a checkpoint.")
            return {}
        try:
            return require_object(parse_json(path.read_bytes()))
        except RewardError as error:
            raise RewardError(f"{name} of {self.folder.name}: {error.message}") from None

    def _refuse_what_cannot_be_read(self) -> None:
        name = self.folder.name
        if (self.folder / "adapter_config.json").is_file():
            raise RewardError(
                f"{name} is an adapter without its base model; merge them first: "
                "AutoPeftModelForSequenceClassification.from_pretrained(FOLDER).merge_and_unload()."
            )
        if "quantization_config" in self.config:
            raise RewardError(f"the weights in {name} are quantised; import the model they were made from.")
        if list(self.folder.glob("*.safetensors")):
            return
        pickled = [path.name for path in sorted(self.folder.iterdir()) if path.suffix in _PICKLED]
        if pickled:
            raise RewardError(
                f"{name} has its weights as {', '.join(pickled[:3])}, which can run code when it is read; only "
                f"safetensors are accepted. To convert it, {TO_SAFETENSORS}."
            )
        raise RewardError(f"{name} has no .safetensors file, and so no weights.")

    def _require_small_headers(self) -> None:
        total = 0
        for path in self.folder.glob("*.safetensors"):
            with path.open("rb") as file:
                total += int.from_bytes(file.read(8), "little")
        if total > _MOST_HEADERS:
            raise RewardError(
                f"the headers of the safetensors files in {self.folder.name} have {total / 2**20:.0f} MB, and at most "
                f"{_MOST_HEADERS // 2**20} MB are read."
            )

    def _require_plausible(self, config: Mapping[str, Any]) -> None:
        """Before a model is built by its configuration: raises RewardError where that has more parts than tensors."""
        sizes = (size for tensor in self.tensors.values() for size in tensor.shape)
        most = max([len(self.tensors), *sizes])
        for name, value in config.items():
            if isinstance(value, dict) and name.endswith("config"):
                self._require_plausible(value)
            limit = len(self.tensors) if _LAYERS.search(name) else most if _PARTS.search(name) else None
            if limit is not None and isinstance(value, int) and value > limit:
                raise RewardError(
                    f"{CONFIG} of {self.folder.name} says {name} = {value}, and the weights are {len(self.tensors)} "
                    "tensors; import a checkpoint whose weights fit its config.json."
                )

    def _headers(self) -> Iterable[TensorHeader]:
        index = self._json(INDEX)
        if not index:
            for path in sorted(self.folder.glob("*.safetensors")):
                yield from read_headers(path)
            return
        places = index.get("weight_map")
        if not isinstance(places, dict):
            raise RewardError(f"{INDEX} of {self.folder.name} has no weight_map.")
        for file in sorted({str(file) for file in places.values()}):
            path = self.folder / file
            if Path(file).name != file or not path.is_file():
                raise RewardError(f"{INDEX} of {self.folder.name} names {file}, which is not there.")
            yield from (tensor for tensor in read_headers(path) if places.get(tensor.name) == file)


def read_headers(path: Path) -> list[TensorHeader]:
    """Of the tensors in a safetensors file. Raises RewardError where it is none, or is shorter than it says."""
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if not 2 <= length <= min(_MOST_HEADER, size - 8):
            raise RewardError(f"{path.name} is not a complete safetensors file; download it again.")
        text = file.read(length)
    try:
        found = json.loads(text)
        start = 8 + length
        tensors = [
            TensorHeader(
                name, at["dtype"], tuple(at["shape"]), path, *(start + end for end in at["data_offsets"])
            )
            for name, at in found.items()
            if name != "__metadata__"
        ]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise RewardError(f"{path.name} is no safetensors file ({type(error).__name__}).") from None
    if any(not start <= tensor.begin <= tensor.end <= size for tensor in tensors):
        raise RewardError(f"{path.name} is shorter than its header says; download it again.")
    return tensors
