"""What a training run is to do: a recipe, from TOML or a dict. No torch here, so that the web process can check one."""

import dataclasses
import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta

from workers.errors import RewardError
from workers.schema.decode import escape
from workers.schema.decoder_recipes import DECODER_RECIPES

_BESIDE_A_CHUNK = 32  # its frame, and the mark of a gap
Share = Annotated[float, Meta(ge=0, lt=1)]
NonNegative = Annotated[float, Meta(ge=0, le=1000)]
GENERATORS = ("outcome", "swap", "drop", "repeat", "wrong_argument", "wrong_tool", "hard_negative")
Generator = Literal["outcome", "swap", "drop", "repeat", "wrong_argument", "wrong_tool", "hard_negative"]
GENERATIVE = "generative"  # a language model that writes: of a kind of its own, and no part of `joint`
# One file each; their names are enough here, where torch must not be loaded. `joint` has all of them.
_FILES = (path.stem for path in (Path(__file__).parents[1] / "objectives").glob("[a-z]*.py"))
SINGLE = tuple(sorted(name for name in _FILES if name != GENERATIVE))
OBJECTIVES = (*SINGLE, GENERATIVE, "joint")
Positive = Annotated[float, Meta(gt=0, le=1000)]
AUTO = "auto"  # the built-in recipe with a search
CONVEX = ("linear", "hybrid")  # backbones that are fitted whole, with no weights to start from
# What `search` may name, the simplest first, and what each is.
SEARCHED = {
    "linear": "n-grams and structure, fitted convexly",
    "hybrid": "these and the encoder's embeddings of steps, fitted convexly",
    "frozen": "the step-encoder with a frozen encoder",
    "unfrozen": "the step-encoder, whose encoder is trained too",
    "lora": "low-rank adapters of the recipe's decoder",
}
Searched = Literal["linear", "hybrid", "frozen", "unfrozen", "lora"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """Every knob of a training run. `PURPOSES` says in a sentence what each is for."""

    objective: str = "bradley_terry"
    criterion: str | None = None
    joint_weights: dict[str, NonNegative] = field(default_factory=dict)
    criteria_weights: dict[str, float] = field(default_factory=dict)

    backbone: Literal["step-encoder", "decoder", "features", "linear", "hybrid"] = "step-encoder"
    encoder: Annotated[str, Meta(min_length=1)] = "embedded"
    decoder: str = ""
    lora_rank: Annotated[int, Meta(ge=0, le=1024)] = 16
    lora_alpha: Annotated[float, Meta(gt=0, le=10_000)] = 32.0
    base_weights: Literal["auto", "float32", "bfloat16", "nf4"] = "auto"
    gradient_checkpointing: bool = False
    unfrozen: bool = False
    heads_only: bool = False
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
    strength_weights: tuple[Positive, Positive, Positive] = (1.0, 1.0, 1.0)
    label_smoothing: Annotated[float, Meta(ge=0, lt=0.5)] = 0.0
    centring: Annotated[float, Meta(ge=0, le=10)] = 0.01
    ties: Literal["rao_kupper", "davidson"] = "rao_kupper"
    annotators: Literal["equal", "given", "learnt"] = "given"

    epochs: Annotated[int, Meta(ge=1, le=1000)] = 20
    learning_rate: Positive = 1e-3
    encoder_learning_rate: Positive = 3e-5
    weight_decay: Annotated[float, Meta(ge=0, le=10)] = 0.05
    warmup: Share = 0.1
    clip_norm: Positive = 1.0
    batch_pairs: Annotated[int, Meta(ge=1, le=4096)] = 32
    batch_tokens: Annotated[int, Meta(ge=64)] = 65_536
    batch_tasks: Annotated[int, Meta(ge=1, le=4096)] = 4
    batch_per_process: bool = False
    micro_tokens: Annotated[int, Meta(ge=64)] = 16_384
    sharding: Literal["auto", "always", "never"] = "auto"
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    evaluations_per_epoch: Annotated[int, Meta(ge=1, le=100)] = 1
    patience: Annotated[int, Meta(ge=0)] = 5
    checkpoint_seconds: Annotated[float, Meta(ge=0)] = 30.0
    folds: Annotated[int, Meta(ge=0, le=100)] = 0
    search: tuple[Searched, ...] = ()
    search_seconds: Annotated[float, Meta(gt=0, le=1_000_000)] = 600.0

    generators: tuple[Generator, ...] = ()
    generated_per_trajectory: Annotated[int, Meta(ge=1, le=100)] = 1
    generated_weight: NonNegative = 0.5

    critique_tokens: Annotated[int, Meta(ge=1, le=8192)] = 256
    critique_weight: NonNegative = 1.0
    pointwise_weight: NonNegative = 1.0
    rating_weight: NonNegative = 1.0
    own_critique_epochs: Annotated[int, Meta(ge=0, le=1000)] = 1
    principles: bool = False
    negate: Share = 0.25
    reinforce_steps: Annotated[int, Meta(ge=0, le=100_000)] = 0
    reinforce_samples: Annotated[int, Meta(ge=2, le=64)] = 8
    reinforce_rate: Positive = 1e-5
    reinforce_clip: Annotated[float, Meta(gt=0, lt=1)] = 0.2
    reinforce_kl: NonNegative = 0.01
    reinforce_consistency: NonNegative = 0.5
    reinforce_singles: bool = True

    @property
    def shares_encoder(self) -> bool:
        """Whether its models have a frozen encoder, so that the trainings of all folds can use one and its cache."""
        return self.backbone == "hybrid" or (self.backbone == "step-encoder" and not self.unfrozen)


PURPOSES: dict[str, str] = {
    "objective": "the loss, and with it the feedback that is read",
    "criterion": "learn from comparisons by this criterion; without it, from the overall ones",
    "joint_weights": "of 'joint': how much an objective counts, by its name; 0 leaves it out, 1 where it is not named",
    "criteria_weights": "of rubric scores without ratings: how much a criterion counts in the reward, by its name; "
    "below 0 more is worse; where it is not named, its weight in the rubric",
    "backbone": "what reads the trajectories: 'step-encoder', 'linear' (n-grams and structure) or 'hybrid' (these and "
    "embeddings of steps) anywhere, 'decoder' on a GPU, 'features' for numbers",
    "encoder": "'embedded' (MiniLM, comes with the installation), or a BERT-type encoder by its name",
    "decoder": "a causal language model by its name: listed by the operator or project/name@version; for that backbone",
    "lora_rank": "of the decoder's low-rank adapters; 0 trains all its weights",
    "lora_alpha": "what the adapters are scaled by, over their rank",
    "base_weights": "how the decoder's frozen weights are kept under adapters: 'auto' is bfloat16 on a GPU, float32 "
    "on a CPU; 'nf4' is 4 bits (QLoRA, needs bitsandbytes); what is trained is always float32",
    "gradient_checkpointing": "compute the decoder's activations twice instead of keeping them: slower, less memory",
    "unfrozen": "train the encoder too: minutes instead of seconds, better where there are over a thousand pairs",
    "heads_only": "train only the heads, on the frozen backbone of the parent model: seconds",
    "chunk_tokens": "largest number of tokens of a chunk in which steps are encoded",
    "max_tokens": "longer trajectories lose steps from their middle; such scores are flagged 'truncated'",
    "width": "width of the mixer over the chunks",
    "layers": "layers of the mixer; 0 reads each step with no regard to those before it",
    "attention_heads": "attention heads of the mixer; they divide its width",
    "grounding": "give the mixer the share of each chunk that appeared before, and its source",
    "dropout": "dropout in the mixer",
    "ensemble": "heads, each trained on its own bootstrap sample; their spread is the uncertainty. Of a linear model, "
    "draws from its posterior",
    "aggregation": "how steps make one reward: 'value' is the last value, the others combine per-step rewards",
    "margins": "by how much the better one has to win, in raw reward, for strengths 1, 2 and 3",
    "strength_weights": "how much a comparison counts, for strengths 1, 2 and 3; 1, 2, 3 is scaled Bradley-Terry",
    "label_smoothing": "probability that a choice is a slip, for all annotators",
    "centring": "weight of (r_a + r_b)^2, which keeps rewards around zero",
    "ties": "the model of ties and both-bad; davidson: differences of rewards are log odds of being preferred",
    "annotators": "'given': trust each by the estimate in the records, fully where there is none; 'learnt': estimate "
    "it; 'equal': no weights",
    "epochs": "passes over the training pairs, at most",
    "learning_rate": "of mixer and heads, at its peak",
    "encoder_learning_rate": "of the encoder where it is unfrozen, at its peak",
    "weight_decay": "AdamW's",
    "warmup": "share of all steps in which the learning rate rises; it falls by a cosine after them",
    "clip_norm": "largest norm of the gradient",
    "batch_pairs": "comparisons, or other judgements, in a batch, at most: in all processes together",
    "batch_tokens": "what a batch computes, at most: tokens, each shared one once; chunks where the encoder is frozen",
    "batch_tasks": "of a decoder's batch one task has at most batch_pairs / batch_tasks comparisons; 1 keeps tasks "
    "together, which computes what they share once",
    "batch_per_process": "batch_pairs and batch_tokens are of each process, not of all together: more processes take "
    "fewer and larger steps",
    "micro_tokens": "of those, the tokens of one forward pass in a process; gradients are accumulated over a batch",
    "sharding": "of several processes: 'always' shards the model, 'never' gives each a whole copy, 'auto' shards it "
    "where half of a process's memory does not hold a copy with its gradients and optimiser",
    "precision": "of the encoder in training: 'auto' is bfloat16 where the machine computes in it; scoring is float32",
    "evaluations_per_epoch": "how often validation is measured",
    "patience": "measurements without improvement after which training stops (less than 50 validation records tell too "
    "little for that: after eight epochs, or two fifths, once it does not fall); 0 never stops early",
    "checkpoint_seconds": "a checkpoint at least this often",
    "folds": "also measure by k-fold over all tasks (0: only on the test split); costs k more trainings",
    "search": f"choose by cross-validation among {', '.join(SEARCHED)}: the simplest within a standard error of the "
    "best; () takes the recipe as it is",
    "search_seconds": "of 'search': how long all candidates together may take",
    "generators": f"make more comparisons where people are scarce: any of {', '.join(GENERATORS)}; marked as generated",
    "generated_per_trajectory": "how many a generator makes of one trajectory, at most",
    "generated_weight": "weight of a generated comparison relative to one of a person",
    "critique_tokens": "of 'generative': largest number of tokens of a critique, before the verdict",
    "critique_weight": "of 'generative': weight of learning people's comments relative to their verdicts",
    "pointwise_weight": "of 'generative': weight of the verdicts on single trajectories, whose difference predicts the "
    "preference, relative to the verdicts on pairs",
    "rating_weight": "of 'generative': weight of ratings of single trajectories; 0 leaves them out",
    "own_critique_epochs": "of 'generative': passes over the pairs in which verdicts follow critiques the model wrote "
    "itself, after the epochs with annotators' comments; 0: none",
    "principles": "of 'generative': ask each comparison by its own criterion, so that a request may name any",
    "negate": "of 'principles': the share asked by the opposite of the criterion, so that it has to be read",
    "reinforce_steps": "of 'generative': steps of reinforcement by right verdicts, after the epochs; 0: none",
    "reinforce_samples": "critiques written of each pair, in each order; they are compared with each other",
    "reinforce_rate": "the learning rate of reinforcement",
    "reinforce_clip": "how far a token's probability may move in a step before it counts no more",
    "reinforce_kl": "weight of the divergence from the model that reinforcement began with",
    "reinforce_consistency": "how much more a right verdict counts if the other order gives it too",
    "reinforce_singles": "reinforce critiques of single trajectories too, by whether their scores order the pair",
}


# Why a key has the value it has where it is left out.
REASONS: dict[str, str] = {
    "objective": "comparisons are what people give most of",
    "criterion": "the overall judgement is what most campaigns ask for",
    "joint_weights": "every kind of feedback counts; only 'progress' is left out, which reads what 'outcome' reads",
    "criteria_weights": "a rubric says it; what no rubric says is not guessed",
    "backbone": "trains in seconds on any machine",
    "encoder": "needs no download",
    "decoder": "none comes with the installation",
    "lora_rank": "enough for a reward model, at a fraction of the memory of training everything",
    "lora_alpha": "twice the rank, as is usual",
    "base_weights": "frozen weights get no small updates that bfloat16 would lose",
    "gradient_checkpointing": "only worth its time where memory runs out",
    "unfrozen": "with few comparisons a trained encoder remembers them instead of learning from them",
    "heads_only": "a first model needs its trunk trained; later ones may keep it",
    "chunk_tokens": "most steps fit into one or two, and what the encoder was trained on was no longer",
    "max_tokens": "nearly every conversation fits; decoders take 2048, since their cost grows faster",
    "width": "a third of the encoder's 384: more of it learnt the training tasks by heart",
    "layers": "one look at what came before; more need more data",
    "attention_heads": "32 numbers each",
    "grounding": "whether an answer says what the passages say is seen by no embedding of the answer alone",
    "dropout": "little, as the model is small",
    "ensemble": "their spread settles at about five; a decoder has one, since its trunk is what costs",
    "aggregation": "reads the whole trajectory once, at its end",
    "margins": "how much better people find one is not how far apart rewards should be, unless you say so",
    "strength_weights": "a strength is an opinion too; the recipes of decoders use it",
    "label_smoothing": "slips are better learnt by annotator, with annotators = 'learnt'",
    "centring": "too weak to move accuracy, strong enough to fix the origin; 0 for sums, whose origin means something",
    "ties": "rao_kupper keeps the results of recipes from before this key",
    "annotators": "uses what is known and guesses nothing",
    "epochs": "early stopping ends it sooner; a decoder takes two, more overfit",
    "learning_rate": "the most at which the small parts train steadily; a tenth for a decoder's adapters, a hundredth "
    "where all of a decoder is trained",
    "encoder_learning_rate": "usual for fine-tuning small encoders",
    "weight_decay": "a little against learning tasks by heart; none on adapters",
    "warmup": "Adam's first steps know no scale yet",
    "clip_norm": "one strange batch does not undo the others",
    "batch_pairs": "large enough for a quiet gradient, small enough for some hundred steps on a small set",
    "batch_tokens": "a bound for very long trajectories; shorter ones are bounded by batch_pairs",
    "batch_tasks": "a batch of one task says little of others; as accurate as whole tasks, which compute less",
    "batch_per_process": "a recipe then gives the same model with any number of processes",
    "micro_tokens": "fits into 8 GB with the small models; it is halved where memory runs out",
    "sharding": "a whole copy exchanges gradients once for each step, a sharded one its weights in every pass",
    "precision": "as exact as the machine does at full speed",
    "evaluations_per_epoch": "once is enough where an epoch takes seconds; four times for decoders",
    "patience": "validation is noisy; five worse ones in a row are no noise",
    "checkpoint_seconds": "what a killed worker loses at most; ten minutes for decoders, whose checkpoints are large",
    "folds": "costs as many trainings more; worth it below some hundred held-out comparisons",
    "search": "a recipe says what it is; 'auto' is the one that searches",
    "search_seconds": "some minutes, as people wait for a first model",
    "generators": "human feedback is usually enough",
    "generated_per_trajectory": "more of them say the same",
    "generated_weight": "generated comparisons count less than human ones",
    "critique_tokens": "a few sentences on each run",
    "critique_weight": "both are learnt from people",
    "pointwise_weight": "trainers ask for single scores, people see pairs",
    "rating_weight": "a rating is about a single trajectory, as the score is",
    "own_critique_epochs": "a score is asked for after a critique of the model, not after one of an annotator",
    "principles": "the overall judgement is what most campaigns ask for",
    "negate": "enough to learn what an opposite is, and most is asked as people were",
    "reinforce_steps": "it needs a judge that is often right already, and many times the time",
    "reinforce_samples": "as many as GRPO needs to tell better from worse",
    "reinforce_rate": "a tenth of the decoder's, since samples are noisier than labels",
    "reinforce_clip": "PPO's",
    "reinforce_kl": "keeps its sentences readable",
    "reinforce_consistency": "as in R1-Reward",
    "reinforce_singles": "trainers ask for single scores",
}


# Other defaults where another backbone, objective or aggregation is chosen.
FITTING: dict[str, dict[str, dict[str, Any]]] = {
    "backbone": {
        "decoder": {
            "learning_rate": 1e-4,
            "ensemble": 1,
            "epochs": 2,
            "batch_pairs": 16,
            "weight_decay": 0.0,
            "evaluations_per_epoch": 4,
            "max_tokens": 2048,
            "checkpoint_seconds": 600.0,
        },
        # Its ridge penalty keeps rewards small, and a prompt that both share is no reason to move them.
        "linear": {"ensemble": 8, "centring": 0.0},
        "hybrid": {"ensemble": 8, "centring": 0.0},
    },
    "objective": {
        "process": {"aggregation": "min"},
        "progress": {"aggregation": "sum"},
        # It answers at its end, and there is one of it.
        "generative": {"aggregation": "sum", "ensemble": 1},
    },
    # What every step of a sum has in common is no matter of taste: it tells a longer trajectory from a shorter one.
    "aggregation": {"sum": {"centring": 0.0}},
}
# And where all weights of a decoder are trained (lora_rank = 0): pretrained weights bear smaller steps, and one epoch.
FULL_FINE_TUNING: dict[str, Any] = {
    "learning_rate": 1e-5,
    "epochs": 1,
    "warmup": 0.05,
    "gradient_checkpointing": True,
}


_UNFROZEN: dict[str, Any] = {
    "unfrozen": True,
    "epochs": 3,
    "batch_pairs": 16,
    "batch_tokens": 8192,
    "evaluations_per_epoch": 2,
    "patience": 3,
}
# What a recipe says of the feedback and its losses, whichever model learns from them.
_OF_FEEDBACK = (
    *(
        "objective",
        "criterion",
        "joint_weights",
        "criteria_weights",
        "aggregation",
        "margins",
        "strength_weights",
    ),
    *(
        "label_smoothing",
        "ties",
        "annotators",
        "folds",
        "generators",
        "generated_per_trajectory",
        "generated_weight",
    ),
)


def parse_recipe(source: str | Mapping[str, Any]) -> Recipe:
    """A Recipe of TOML text or a decoded object. Raises RewardError with the pointer of the key that is wrong.

    `recipe_keys.parse_new_recipe` also refuses keys that have no effect.
    """
    values = decode_recipe(source)
    unknown = next((key for key in values if key not in PURPOSES), None)
    if unknown is not None:
        raise RewardError(
            f"unknown key {unknown!r} in the recipe; known are {', '.join(PURPOSES)}.",
            pointer=f"/{escape(str(unknown))}",
        )
    # One key at a time, so that an error can name its key; msgspec tells no key for a value out of range in a tuple.
    hints = get_type_hints(Recipe, include_extras=True)
    given = {key: _value(key, value, hints[key]) for key, value in values.items()}
    recipe = Recipe(**(fitting(given) | given))
    _check(recipe)
    return recipe


def fitting(given: Mapping[str, Any]) -> dict[str, Any]:
    """The defaults that differ from those of `Recipe` for what is given of backbone, objective and aggregation."""
    found: dict[str, Any] = {}
    for key, by_value in FITTING.items():
        found |= by_value.get((found | dict(given)).get(key, ""), {})
    is_reward_decoder = given.get("backbone") == "decoder" and given.get("objective") != GENERATIVE
    if is_reward_decoder and given.get("lora_rank") == 0 and not given.get("heads_only"):
        found |= FULL_FINE_TUNING
    return found


def searched_recipe(recipe: Recipe, name: str) -> Recipe:
    """A candidate of the recipe's search: its own recipe, with what the search's recipe says of the feedback."""
    kept = {key: getattr(recipe, key) for key in _OF_FEEDBACK}
    kept = {key: list(value) if isinstance(value, tuple) else value for key, value in kept.items()}
    if name == "linear":
        return parse_recipe(kept | {"backbone": "linear"})
    if name == "hybrid":
        return parse_recipe(kept | {"backbone": "hybrid", "encoder": recipe.encoder})
    if name == "lora":
        return parse_recipe(kept | {"backbone": "decoder", "decoder": recipe.decoder})
    kept |= {"encoder": recipe.encoder, "max_tokens": recipe.max_tokens}
    return parse_recipe(kept | (_UNFROZEN if name == "unfrozen" else {}))


def recipe_to_dict(recipe: Recipe) -> dict[str, Any]:
    """Plain JSON values; `parse_recipe` gives the same recipe back."""
    values = dataclasses.asdict(recipe)
    return {key: list(value) if isinstance(value, tuple) else value for key, value in values.items()}


def builtin_recipes() -> dict[str, Recipe]:
    """By name. Named after their objective or decoder; the suffix says what is different."""
    return {
        AUTO: Recipe(search=("linear", "hybrid", "frozen", "unfrozen")),
        "bradley-terry": Recipe(),
        "bradley-terry-unfrozen": parse_recipe(_UNFROZEN),
        **{
            f"{name.replace('_', '-')}-linear": parse_recipe({"objective": name, "backbone": "linear"})
            for name in ("bradley_terry", "outcome", "process", "regression", "joint")
        },
        "bradley-terry-hybrid": parse_recipe({"backbone": "hybrid"}),
        **{
            name.replace("_", "-"): parse_recipe({"objective": name})
            for name in OBJECTIVES
            if name not in ("bradley_terry", GENERATIVE)  # no decoder comes with the installation
        },
        **{name: parse_recipe(values) for name, values in DECODER_RECIPES.items()},
    }


def decode_recipe(source: str | Mapping[str, Any]) -> dict[str, Any]:
    """Keys and values as they are given, unchecked. Raises RewardError where it is no TOML."""
    if not isinstance(source, str):
        return dict(source)
    try:
        return tomllib.loads(source)
    except tomllib.TOMLDecodeError as error:
        raise RewardError(f"the recipe is not valid TOML: {error}.", pointer="") from None


def _value(key: str, value: Any, type_: Any) -> Any:
    numbers = value if isinstance(value, list | tuple) else [value]
    numbers = [*value.values()] if isinstance(value, dict) else numbers
    if any(isinstance(number, float) and not math.isfinite(number) for number in numbers):
        raise RewardError(f"{key} is {value}, which is no finite number.", pointer=f"/{key}")
    try:
        return msgspec.convert(value, type_)
    except msgspec.ValidationError as error:
        message = str(error).partition(" - at `")[0]
        if get_origin(type_) is Literal:
            message = f"known are {', '.join(map(repr, get_args(type_)))}"
        raise RewardError(f"{key} = {value!r}: {message} ({PURPOSES[key]}).", pointer=f"/{key}") from None


def _check(recipe: Recipe) -> None:
    if recipe.objective not in OBJECTIVES:
        raise RewardError(
            f"there is no objective {recipe.objective!r}; known are {', '.join(OBJECTIVES)}.",
            pointer="/objective",
        )
    if unknown := set(recipe.joint_weights) - set(SINGLE):
        raise RewardError(
            f"joint_weights names {', '.join(sorted(unknown))}; it may name {', '.join(SINGLE)}.",
            pointer="/joint_weights",
        )
    if recipe.backbone == "decoder" and not recipe.decoder:
        raise RewardError(
            "the backbone 'decoder' needs `decoder`, the name of a causal language model: of the operator's list, or "
            "project/name@version.",
            pointer="/decoder",
        )
    _check_base_weights(recipe)
    if recipe.principles and recipe.objective != GENERATIVE:
        raise RewardError(
            f"principles = true means nothing to the objective {recipe.objective!r}; only 'generative' reads them.",
            pointer="/principles",
        )
    if recipe.objective == GENERATIVE:
        _check_generative(recipe)
    if recipe.backbone in CONVEX and (recipe.heads_only or recipe.unfrozen):
        key = "unfrozen" if recipe.unfrozen else "heads_only"
        raise RewardError(
            f"{key} means nothing to the backbone {recipe.backbone!r}, which is fitted whole in seconds; leave it out.",
            pointer=f"/{key}",
        )
    if recipe.heads_only and (recipe.unfrozen or recipe.folds):
        key = "unfrozen" if recipe.unfrozen else "folds"
        raise RewardError(
            f"heads_only trains the heads on a frozen backbone, so {key} cannot be combined with it; leave one of them "
            "out.",
            pointer=f"/{key}",
        )
    is_encoder = recipe.backbone == "step-encoder"
    if is_encoder and recipe.width % recipe.attention_heads:
        raise RewardError(
            f"attention_heads = {recipe.attention_heads} does not divide width = {recipe.width}.",
            pointer="/attention_heads",
        )
    if is_encoder and recipe.chunk_tokens + _BESIDE_A_CHUNK > recipe.max_tokens:
        raise RewardError(
            f"chunk_tokens = {recipe.chunk_tokens} is too many for max_tokens = {recipe.max_tokens}; "
            f"leave room for a chunk and {_BESIDE_A_CHUNK} tokens more.",
            pointer="/chunk_tokens",
        )
    if recipe.search:
        _check_search(recipe)
    if recipe.folds == 1:
        raise RewardError(
            "folds = 1 leaves nothing to train on; use 0 (none) or at least 2.", pointer="/folds"
        )


def _check_search(recipe: Recipe) -> None:
    if (
        recipe.objective == GENERATIVE
        or recipe.backbone != "step-encoder"
        or recipe.heads_only
        or recipe.unfrozen
    ):
        raise RewardError(
            "search chooses the backbone itself, among reward models that do not write; leave it out, or leave out "
            "backbone, unfrozen, heads_only and the objective 'generative'.",
            pointer="/search",
        )
    if len(set(recipe.search)) < len(recipe.search):
        raise RewardError(f"search names a candidate twice: {', '.join(recipe.search)}.", pointer="/search")
    if "lora" in recipe.search and not recipe.decoder:
        raise RewardError(
            "the candidate 'lora' needs `decoder`, the name of a causal language model; set it, or leave 'lora' out.",
            pointer="/decoder",
        )


def _check_base_weights(recipe: Recipe) -> None:
    if recipe.base_weights == "auto":
        return
    if recipe.backbone != "decoder" or recipe.objective == GENERATIVE:
        what = (
            "the objective 'generative'"
            if recipe.backbone == "decoder"
            else f"the backbone {recipe.backbone!r}"
        )
        raise RewardError(
            f"base_weights = {recipe.base_weights!r} means nothing to {what}; leave it out.",
            pointer="/base_weights",
        )
    if recipe.base_weights != "float32" and not recipe.lora_rank and not recipe.heads_only:
        raise RewardError(
            f"base_weights = {recipe.base_weights!r} is for frozen weights, and lora_rank = 0 trains all: "
            "bfloat16 would lose their small updates. Set lora_rank above 0, or leave base_weights out.",
            pointer="/base_weights",
        )


def _check_generative(recipe: Recipe) -> None:
    if recipe.backbone != "decoder":
        raise RewardError(
            "the objective 'generative' writes critiques, so it needs the backbone 'decoder'.",
            pointer="/backbone",
        )
    fixed = {"ensemble": 1, "aggregation": "sum", "folds": 0, "heads_only": False, "generators": ()}
    for key, only in fixed.items():
        if getattr(recipe, key) != only:
            raise RewardError(
                f"{key} = {getattr(recipe, key)!r} means nothing to the objective 'generative'; leave it out.",
                pointer=f"/{key}",
            )
    if recipe.principles and recipe.criterion is not None:
        raise RewardError(
            f"principles = true asks each comparison by its own criterion, criterion = {recipe.criterion!r} all by "
            "one; leave one of them out.",
            pointer="/criterion",
        )
    if recipe.annotators == "learnt":
        raise RewardError(
            "annotators = 'learnt' is not known to the objective 'generative'; choose 'given' or 'equal'.",
            pointer="/annotators",
        )
    if recipe.critique_tokens * 2 > recipe.max_tokens:
        raise RewardError(
            f"critique_tokens = {recipe.critique_tokens} leaves little of max_tokens = {recipe.max_tokens} to the "
            "runs; give it at most half.",
            pointer="/critique_tokens",
        )
