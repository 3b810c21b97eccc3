"""What a training run is to do: a recipe, from TOML or a dict. No torch here, so that the web process can check one."""

import dataclasses
import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_type_hints

import msgspec
from msgspec import Meta

from workers.errors import RewardError
from workers.schema.decode import escape

_BESIDE_A_CHUNK = 32  # its frame, and the mark of a gap
Share = Annotated[float, Meta(ge=0, lt=1)]
Positive = Annotated[float, Meta(gt=0, le=1000)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """Every knob of a training run. `PURPOSES` says in a sentence what each is for."""

    objective: Literal["bradley_terry"] = "bradley_terry"
    criterion: str | None = None

    backbone: Literal["step-encoder"] = "step-encoder"
    encoder: Annotated[str, Meta(min_length=1)] = "embedded"
    unfrozen: bool = False
    chunk_tokens: Annotated[int, Meta(ge=8, le=510)] = 128
    max_tokens: Annotated[int, Meta(ge=64, le=1_000_000)] = 8192

    width: Annotated[int, Meta(ge=8, le=2048)] = 128
    layers: Annotated[int, Meta(ge=0, le=12)] = 1
    attention_heads: Annotated[int, Meta(ge=1, le=32)] = 4
    grounding: bool = True
    dropout: Share = 0.1
    ensemble: Annotated[int, Meta(ge=1, le=64)] = 5
    aggregation: Literal["value", "sum", "mean", "min"] = "value"

    margins: tuple[
        Annotated[float, Meta(ge=0)], Annotated[float, Meta(ge=0)], Annotated[float, Meta(ge=0)]
    ] = (0.0, 0.0, 0.0)
    label_smoothing: Annotated[float, Meta(ge=0, lt=0.5)] = 0.0
    centring: Annotated[float, Meta(ge=0, le=10)] = 0.01
    annotators: Literal["equal", "given", "learnt"] = "given"

    epochs: Annotated[int, Meta(ge=1, le=1000)] = 20
    learning_rate: Positive = 1e-3
    encoder_learning_rate: Positive = 3e-5
    weight_decay: Annotated[float, Meta(ge=0, le=10)] = 0.05
    warmup: Share = 0.1
    clip_norm: Positive = 1.0
    batch_pairs: Annotated[int, Meta(ge=1, le=4096)] = 32
    batch_tokens: Annotated[int, Meta(ge=64)] = 65_536
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    evaluations_per_epoch: Annotated[int, Meta(ge=1, le=100)] = 1
    patience: Annotated[int, Meta(ge=0)] = 5
    checkpoint_seconds: Annotated[float, Meta(ge=0)] = 30.0
    folds: Annotated[int, Meta(ge=0, le=100)] = 0


PURPOSES: dict[str, str] = {
    "objective": "the loss, and with it the feedback that is read",
    "criterion": "learn from comparisons by this criterion; without it, from the overall ones",
    "backbone": "what reads the trajectories",
    "encoder": "'embedded' (MiniLM, comes with the installation) or a folder with a BERT-type encoder",
    "unfrozen": "train the encoder too: minutes instead of seconds, better where there are over a thousand pairs",
    "chunk_tokens": "steps are encoded in chunks of at most so many tokens",
    "max_tokens": "longer trajectories lose steps from their middle; such scores are flagged 'truncated'",
    "width": "width of the mixer over the chunks",
    "layers": "layers of the mixer; 0 reads each step with no regard to those before it",
    "attention_heads": "attention heads of the mixer; they divide its width",
    "grounding": "let the mixer see how much of each chunk was said before, and by whom",
    "dropout": "dropout in the mixer",
    "ensemble": "heads, each trained on its own bootstrap sample; their spread is the uncertainty",
    "aggregation": "how steps make one reward: 'value' is the last value, the others combine per-step rewards",
    "margins": "by how much the better one has to win, in raw reward, for strengths 1, 2 and 3",
    "label_smoothing": "chance that a choice is a slip, whoever made it",
    "centring": "weight of (r_a + r_b)^2, which keeps rewards around zero",
    "annotators": "'given': trust each by the reliability in the records; 'learnt': estimate it; 'equal': all alike",
    "epochs": "passes over the training pairs, at most",
    "learning_rate": "of mixer and heads, at its peak",
    "encoder_learning_rate": "of the encoder where it is unfrozen, at its peak",
    "weight_decay": "AdamW's",
    "warmup": "share of all steps in which the learning rate rises; it falls by a cosine after them",
    "clip_norm": "largest norm of the gradient",
    "batch_pairs": "pairs in a batch, at most",
    "batch_tokens": "what a batch computes, at most: tokens where the encoder is trained, chunks where it is frozen",
    "precision": "of the encoder in training: 'auto' is bfloat16 where the machine computes in it; scoring is float32",
    "evaluations_per_epoch": "how often validation is measured",
    "patience": "stop after so many measurements without a better one; 0 never stops early",
    "checkpoint_seconds": "a checkpoint at least this often",
    "folds": "also measure by k-fold over all tasks (0: only on the test split); costs k more trainings",
}


def parse_recipe(source: str | Mapping[str, Any]) -> Recipe:
    """A Recipe of TOML text or a decoded object. Raises RewardError with the pointer of the key that is wrong."""
    values = dict(_decode(source) if isinstance(source, str) else source)
    unknown = next((key for key in values if key not in PURPOSES), None)
    if unknown is not None:
        raise RewardError(
            f"unknown key {unknown!r} in the recipe; known are {', '.join(PURPOSES)}.",
            pointer=f"/{escape(str(unknown))}",
        )
    # One key at a time, so that an error can name its key; msgspec tells no key for a value out of range in a tuple.
    hints = get_type_hints(Recipe, include_extras=True)
    recipe = Recipe(**{key: _value(key, value, hints[key]) for key, value in values.items()})
    _check(recipe)
    return recipe


def recipe_to_dict(recipe: Recipe) -> dict[str, Any]:
    """Plain JSON values; `parse_recipe` gives the same recipe back."""
    return msgspec.to_builtins(dataclasses.asdict(recipe) | {"margins": list(recipe.margins)})


def builtin_recipes() -> dict[str, Recipe]:
    """By name. Named after their objective; the suffix says what is different."""
    return {
        "bradley-terry": Recipe(),
        "bradley-terry-unfrozen": Recipe(
            unfrozen=True, epochs=3, batch_pairs=16, batch_tokens=8192, evaluations_per_epoch=2, patience=3
        ),
    }


def _decode(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise RewardError(f"the recipe is not valid TOML: {error}.", pointer="") from None


def _value(key: str, value: Any, type_: Any) -> Any:
    numbers = value if isinstance(value, list | tuple) else [value]
    if any(isinstance(number, float) and not math.isfinite(number) for number in numbers):
        raise RewardError(f"{key} is {value}, which is no finite number.", pointer=f"/{key}")
    try:
        return msgspec.convert(value, type_)
    except msgspec.ValidationError as error:
        message = str(error).partition(" - at `")[0]
        raise RewardError(f"{key} = {value!r}: {message} ({PURPOSES[key]}).", pointer=f"/{key}") from None


def _check(recipe: Recipe) -> None:
    if recipe.width % recipe.attention_heads:
        raise RewardError(
            f"attention_heads = {recipe.attention_heads} does not divide width = {recipe.width}.",
            pointer="/attention_heads",
        )
    if recipe.chunk_tokens + _BESIDE_A_CHUNK > recipe.max_tokens:
        raise RewardError(
            f"chunk_tokens = {recipe.chunk_tokens} is too many for max_tokens = {recipe.max_tokens}; "
            f"leave room for a chunk and {_BESIDE_A_CHUNK} tokens more.",
            pointer="/chunk_tokens",
        )
    if recipe.folds == 1:
        raise RewardError(
            "folds = 1 leaves nothing to train on; use 0 (none) or at least 2.", pointer="/folds"
        )
