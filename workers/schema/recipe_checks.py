"""What a recipe may not say, each in words."""

from workers.errors import RewardError
from workers.schema.recipe_values import (
    CONVEX,
    FROM_DEMONSTRATIONS,
    GENERATIVE,
    GOAL_SCORES,
    IMPLICIT,
    INVERSE,
    OBJECTIVES,
    SINGLE,
    VIOLATION,
    Recipe,
)

_CHUNK_FRAME_TOKENS = 32  # of a chunk's frame and the mark of a gap
# Objectives that learn a distribution of the reward, by its kind.
_DISTRIBUTIONS = {"gaussian": ("bradley_terry", "regression"), "quantiles": ("regression",)}
_MOST_QUANTILES = 99


def check_recipe(recipe: Recipe) -> None:
    """Raises RewardError with the pointer of the key that is wrong, or that does not go with another."""
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
    _check_values(recipe)
    if recipe.principles and recipe.objective != GENERATIVE:
        raise RewardError(
            f"principles = true means nothing to the objective {recipe.objective!r}; only 'generative' reads them.",
            pointer="/principles",
        )
    if recipe.objective == GENERATIVE:
        _check_generative(recipe)
    if recipe.objective == IMPLICIT:
        _check_implicit(recipe)
    if recipe.objective in FROM_DEMONSTRATIONS:
        _check_demonstrations(recipe)
    if recipe.objective == INVERSE:
        _check_inverse(recipe)
    if recipe.objective == GOAL_SCORES:
        _check_goal_scores(recipe)
    if recipe.objective == VIOLATION and recipe.aggregation != "value":
        raise RewardError(
            f"the objective {VIOLATION!r} learns log-odds after each step, so aggregation = {recipe.aggregation!r} "
            "means nothing to it; use 'value'.",
            pointer="/aggregation",
        )
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
    if is_encoder and recipe.chunk_tokens + _CHUNK_FRAME_TOKENS > recipe.max_tokens:
        raise RewardError(
            f"chunk_tokens = {recipe.chunk_tokens} is too many for max_tokens = {recipe.max_tokens}; "
            f"leave room for a chunk and {_CHUNK_FRAME_TOKENS} tokens more.",
            pointer="/chunk_tokens",
        )
    if "conditions" in recipe.channels and not recipe.conditioned:
        raise RewardError(
            "a model that reads no conditions has no channel 'conditions'; set `conditioned`, or leave it out.",
            pointer="/channels",
        )
    if recipe.backbone == "linear" and "embedding" in recipe.channels:
        raise RewardError(
            "the backbone 'linear' has no encoder, so `channels` cannot name 'embedding'; leave it out, or use the "
            "backbone 'hybrid'.",
            pointer="/channels",
        )
    if len(set(recipe.channels)) < len(recipe.channels):
        raise RewardError(
            f"channels names one twice: {', '.join(recipe.channels)}; name each once.", pointer="/channels"
        )
    _check_conditions(recipe)
    if recipe.search:
        _check_search(recipe)
    if recipe.folds == 1:
        raise RewardError(
            "folds = 1 leaves nothing to train on; use 0 (none) or at least 2.", pointer="/folds"
        )


def _check_values(recipe: Recipe) -> None:
    if recipe.learns_values and recipe.aggregation != "value":
        raise RewardError(
            f"the objective 'td' learns the value after each step, so aggregation = {recipe.aggregation!r} means "
            "nothing to it; use 'value'.",
            pointer="/aggregation",
        )
    if recipe.distribution != "point":
        _check_distribution(recipe)
    if recipe.learns_values and recipe.hindsight:
        raise RewardError(
            "the objective 'td' reads the rewards of steps, which belong to the goal that was asked for, so hindsight "
            "cannot be combined with it; leave it out.",
            pointer="/hindsight",
        )


def _check_distribution(recipe: Recipe) -> None:
    learning = _DISTRIBUTIONS[recipe.distribution]
    if recipe.objective not in learning:
        raise RewardError(
            f"distribution = {recipe.distribution!r} is learnt by {' or '.join(map(repr, learning))}, not by the "
            f"objective {recipe.objective!r}; use one of these, or leave distribution out.",
            pointer="/distribution",
        )
    if recipe.backbone in CONVEX:
        raise RewardError(
            f"the backbone {recipe.backbone!r} is fitted convexly, and the loss of a distribution is not convex; use "
            "'step-encoder', 'decoder' or 'features', or leave distribution out.",
            pointer="/distribution",
        )
    if recipe.aggregation != "value":
        raise RewardError(
            f"a distribution is of the value at the end of a trajectory, and aggregation = {recipe.aggregation!r} "
            "combines steps; use 'value', or leave distribution out.",
            pointer="/aggregation",
        )
    if recipe.objective == "bradley_terry" and recipe.ties != "rao_kupper":
        raise RewardError(
            f"ties = {recipe.ties!r} has no likelihood for rewards with a spread; use 'rao_kupper', or leave "
            "distribution out.",
            pointer="/ties",
        )
    levels = recipe.quantiles
    if sorted(set(levels)) != list(levels) or 0.5 not in levels or not 3 <= len(levels) <= _MOST_QUANTILES:
        raise RewardError(
            f"quantiles = {[*levels]}: give 3 to {_MOST_QUANTILES} levels in ascending order, each once, with 0.5, "
            "which is the reward.",
            pointer="/quantiles",
        )


def _check_conditions(recipe: Recipe) -> None:
    if len(set(recipe.conditioned)) < len(recipe.conditioned):
        raise RewardError(
            f"conditioned names one twice: {', '.join(recipe.conditioned)}; name each once.",
            pointer="/conditioned",
        )
    if recipe.conditioned and recipe.objective == GENERATIVE:
        raise RewardError(
            "the objective 'generative' is asked in words; give it principles = true in place of `conditioned`.",
            pointer="/conditioned",
        )
    if "same_agent" in recipe.generators and "reference" not in recipe.conditioned:
        raise RewardError(
            "the generator 'same_agent' shows a reference trajectory, which this model would not read; set "
            "conditioned = ['reference'], or leave it out.",
            pointer="/generators",
        )
    if "principle" in recipe.conditioned and recipe.criterion is not None:
        raise RewardError(
            f"a model that reads principles learns from feedback by every criterion, criterion = {recipe.criterion!r} "
            "from one; leave one of them out.",
            pointer="/criterion",
        )
    if recipe.backbone == "features" and set(recipe.conditioned) - {"goal"}:
        raise RewardError(
            "the backbone 'features' reads numbers; of `conditioned` it can read 'goal' only.",
            pointer="/conditioned",
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
    if "lora" in recipe.search and not recipe.lora_rank:
        raise RewardError(
            "lora_rank = 0 trains all weights of the decoder, and the candidate 'lora' trains adapters; set it above "
            "0, or leave 'lora' out.",
            pointer="/lora_rank",
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


def _check_demonstrations(recipe: Recipe) -> None:
    allowed, why = {
        INVERSE: (("sum",), "learns what each step earns"),
        "imitation": (("mean", "sum", "min"), "learns how much each step is like those of demonstrations"),
        "perceptual": (("value",), "learns how far each step has come"),
    }[recipe.objective]
    if recipe.aggregation not in allowed:
        raise RewardError(
            f"the objective {recipe.objective!r} {why}, so aggregation = {recipe.aggregation!r} means nothing to it; "
            f"use {' or '.join(map(repr, allowed))}.",
            pointer="/aggregation",
        )
    if recipe.search:
        raise RewardError(
            f"search compares recipes on held-out feedback, and no measure reads demonstrations, which the objective "
            f"{recipe.objective!r} learns from; leave it out, and name the backbone.",
            pointer="/search",
        )


def _check_inverse(recipe: Recipe) -> None:
    if recipe.backbone == "features" and not recipe.action_numbers:
        raise RewardError(
            f"the objective {INVERSE!r} asks what else could have been done in the same place, so that it has to know "
            "which numbers of a step are its action; set action_numbers to how many they are, at the end of each step.",
            pointer="/action_numbers",
        )
    if recipe.backbone in CONVEX and recipe.ensemble > 1:
        raise RewardError(
            f"the loss of the objective {INVERSE!r} is not convex, so that heads cannot be drawn around its minimum; "
            "leave `ensemble` out, or use another backbone than 'linear' and 'hybrid'.",
            pointer="/ensemble",
        )


def _check_goal_scores(recipe: Recipe) -> None:
    """Raises RewardError where it reads no goals, or is fitted otherwise than by steps of a network."""
    if "goal" not in recipe.conditioned:
        raise RewardError(
            f"the objective {GOAL_SCORES!r} learns which steps lead to a goal, so that it has to read one; set "
            "conditioned = ['goal'], and state the goals in the metadata.",
            pointer="/conditioned",
        )
    if recipe.aggregation != "value":
        raise RewardError(
            f"the objective {GOAL_SCORES!r} learns a score after each step, so aggregation = {recipe.aggregation!r} "
            "means nothing to it; use 'value'.",
            pointer="/aggregation",
        )
    if recipe.backbone in CONVEX or recipe.search:
        raise RewardError(
            f"the objective {GOAL_SCORES!r} learns each score from the next one, which no convex fit does; use the "
            "backbone 'features', 'step-encoder' or 'decoder', and no search.",
            pointer="/search" if recipe.search else "/backbone",
        )


def _check_implicit(recipe: Recipe) -> None:
    if recipe.backbone != "decoder":
        raise RewardError(
            f"the objective {IMPLICIT!r} compares what two causal language models find likely, and the backbone "
            f"{recipe.backbone!r} is none; use the backbone 'decoder'.",
            pointer="/backbone",
        )
    fixed = {
        "ensemble": (1, "has one policy"),
        "aggregation": ("sum", "adds up the log-ratios of the steps"),
        "heads_only": (False, "has no heads"),
        "conditioned": ((), "reads what the agent wrote and was told, and no conditions"),
        "sharding": ("never", "keeps a whole copy of the policy in every process"),
    }
    for key, (only, why) in fixed.items():
        if getattr(recipe, key) != only:
            raise RewardError(
                f"{key} = {getattr(recipe, key)!r} is not known to the objective {IMPLICIT!r}, which {why}; leave it "
                "out.",
                pointer=f"/{key}",
            )
    if recipe.base_weights == "nf4":
        raise RewardError(
            f"base_weights = 'nf4' is not known to the objective {IMPLICIT!r}: its reference model is the decoder as "
            "the files have it, and 4 bits would be another. Use 'bfloat16', or leave it out.",
            pointer="/base_weights",
        )
    if recipe.annotators == "learnt":
        raise RewardError(
            f"annotators = 'learnt' is not known to the objective {IMPLICIT!r}; choose 'given' or 'equal'.",
            pointer="/annotators",
        )
