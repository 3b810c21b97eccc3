"""The components of an endpoint: a struct for each kind, whose fields are the keys of its JSON object.

The docstring is the help of its card, `title` the card's heading.
"""

from dataclasses import replace
from typing import Annotated, ClassVar, Literal

import msgspec

from workers.errors import InvalidRecord, RewardError
from workers.schema.goal_likeness import DEFAULT_ALPHA, MOST_TEXT, GoalTexts, PicturesRead
from workers.schema.part_base import ComponentPart, Count, Expression, Name, PartWeight, Share
from workers.schema.patterns import compiled
from workers.schema.policy_part import PolicyChecks
from workers.schema.program_part import PythonProgram
from workers.schema.reference_parts import (
    AnswerMatch,
    EntityMatch,
    EvidenceMatch,
    GuiAction,
    KeyNodeShare,
    Subgoals,
)
from workers.schema.step_parts import BySpeaker, Logged, Milestones, ObservationUse, RiskMap, UnitTests

Description = Annotated[str, msgspec.Meta(min_length=1, max_length=MOST_TEXT)]


def require_expression(expression: str) -> None:
    """Raises InvalidRecord at /expression for what RE2 does not take."""
    try:
        compiled(expression)
    except InvalidRecord as error:
        raise error.at("/expression") from None


class RewardModelPart(ComponentPart, frozen=True, kw_only=True, tag="reward_model"):
    """A reward model's normalised reward. model: `project/name@version`.

    server: the name of the vLLM server that computes it, one of the configured servers; else it is computed locally.
    """

    title: ClassVar[str] = "Reward model"

    model: Name
    server: Name | None = None


class CriterionPart(ComponentPart, frozen=True, kw_only=True, tag="criterion"):
    """A model's score on one criterion, as its place on the criterion's scale: 0 to 1.

    criterion: the name of one the model was trained on, or the text of a new one.
    """

    title: ClassVar[str] = "Criterion of a model"

    model: Name
    criterion: Annotated[str, msgspec.Meta(min_length=1, max_length=4000)]


class Novelty(ComponentPart, frozen=True, kw_only=True, tag="novelty"):
    """How far the trajectory lies from what the model was trained on, in the space of its features: d / (1 + d), 0 to
    1, where d = 1 is the limit beyond which it is out of distribution (Mahalanobis distance, arXiv 1807.03888; as a
    reward for exploring: Lehman and Stanley, Abandoning Objectives, 2011). The higher it is, the less the model knows:
    use it with a small weight, for a while, and not next to pessimism.
    """

    title: ClassVar[str] = "Novelty to a model"

    model: Name


class GoalLikenessPart(ComponentPart, frozen=True, kw_only=True, tag="goal_likeness"):
    """How much pictures are like a goal that a text describes: -1 to 1 (Rocamonde et al. 2023, arXiv 2310.12921).

    model: an imported encoder of texts and pictures (CLIP, SigLIP), or one that comparisons have adapted. goal: what is
    to be seen where the task is done, such as "a cart with its pole upright"; without it, the goal of the model, with
    what comparisons have taught it. baseline: what is seen otherwise, such as "a cart". alpha: how much only the
    direction from the baseline to the goal counts, 0 to 1; 0.5 with a baseline where it is not set. pictures: the last
    one, where a step earns what it changed, from 0, or each, where every step earns its part of the mean; as in the
    model where it is not set.
    """

    title: ClassVar[str] = "Goal likeness (pictures)"

    model: Name
    goal: Description | None = None
    baseline: Description | None = None
    alpha: Share | None = None
    pictures: PicturesRead | None = None

    def require_sense(self) -> None:
        if self.baseline is not None and self.goal is None:
            raise InvalidRecord(
                "belongs to a goal; set `goal` too, or leave it out and use both of the model.",
                pointer="/baseline",
            )
        if self.goal is not None:
            self._require_sense_of(self.texts(GoalTexts(self.goal)))

    def texts(self, own: GoalTexts) -> GoalTexts:
        """own: of the model."""
        if self.goal is None:
            alpha = own.alpha if self.alpha is None else self.alpha
            return replace(own, alpha=alpha, pictures=self.pictures or own.pictures)
        default = DEFAULT_ALPHA if self.baseline else 0.0
        alpha = default if self.alpha is None else self.alpha
        return GoalTexts(self.goal, self.baseline or "", alpha, self.pictures or own.pictures)

    def _require_sense_of(self, texts: GoalTexts) -> None:
        try:
            texts.require_sense()
        except RewardError as error:
            raise InvalidRecord(error.message, pointer=error.pointer) from None


class StepPenalty(ComponentPart, frozen=True, kw_only=True, tag="step_penalty"):
    """-1 for every agent step beyond `free`: at most 0."""

    title: ClassVar[str] = "Step penalty"

    free: Count = 0


class TokenPenalty(ComponentPart, frozen=True, kw_only=True, tag="token_penalty"):
    """-(tokens the agent wrote beyond `free`) / `per`, in tokens of the endpoint's first model: at most 0."""

    title: ClassVar[str] = "Token penalty"

    free: Count = 0
    per: Annotated[int, msgspec.Meta(ge=1)] = 1000


class RepetitionPenalty(ComponentPart, frozen=True, kw_only=True, tag="repetition_penalty"):
    """-(repeated n-grams of words / all n-grams) of what the agent wrote: -1 to 0."""

    title: ClassVar[str] = "Repetition penalty"

    ngram: Annotated[int, msgspec.Meta(ge=1, le=100)] = 4


class ToolFormat(ComponentPart, frozen=True, kw_only=True, tag="tool_format"):
    """The share of tool calls with a name and a JSON object of arguments: 0 to 1; 1 without a call."""

    title: ClassVar[str] = "Tool call format"


class ToolMatch(ComponentPart, frozen=True, kw_only=True, tag="tool_match"):
    """How well the calls match those of the item's `reference` in tool name, parameter names and values: 0 to 1
    (ToolRL, arXiv 2504.13958, section 3.3).

    name_weight, key_weight, value_weight: what tools, parameter names and values count, relative to each other.
    """

    title: ClassVar[str] = "Tool calls as in the reference"
    reads_reference: ClassVar[bool] = True
    name_weight: PartWeight = 1.0
    key_weight: PartWeight = 1.0
    value_weight: PartWeight = 1.0

    def require_sense(self) -> None:
        if not self.name_weight:
            raise InvalidRecord(
                "must be above 0: what calls of no parameters are worth depends on it.",
                pointer="/name_weight",
            )


class Pattern(ComponentPart, frozen=True, kw_only=True, tag="pattern"):
    """1 where `expression` (RE2 syntax) matches the last agent message, or `all` of them; else 0."""

    title: ClassVar[str] = "Pattern"

    expression: Expression
    within: Annotated[str, msgspec.Meta(pattern="^(last|all)$")] = "last"

    def require_sense(self) -> None:
        require_expression(self.expression)


class Verifier(ComponentPart, frozen=True, kw_only=True, tag="verifier"):
    """A number from an HTTP service: POST {"inputs": [ITEM, ...]} to `url` -> {"rewards": [number, ...]}.

    The reply may have `steps` too: for each item null, or a number for each agent step; they must sum to its reward.
    Without them the last step earns all.

    With a weight of 0 it is no part of the reward, and what the reward is watched against (gold).
    """

    title: ClassVar[str] = "Verifier (HTTP)"
    reads_reference: ClassVar[bool] = True

    url: Annotated[str, msgspec.Meta(min_length=1, max_length=2000)]
    timeout_seconds: Annotated[float, msgspec.Meta(gt=0, le=30)] = 10.0


class JudgePart(ComponentPart, frozen=True, kw_only=True, tag="judge"):
    """What a language model says of the run by a rubric, as its place on the scale: 0 to 1; and why, in words. With a
    weight of 0 it is no part of the reward, and asked for critiques only.

    judge: the name of a judge of the project that scores. criterion: one of its rubric's; without it, the mean of those
    that apply, by the rubric's weights. otherwise: the number where the judge cannot tell; else that is an error.
    timeout_seconds: of a call. each_turn: the judge also scores the trajectory after every turn, up to 32: what the
    agent did and the user replied. Each turn earns what it changed, from 0; they sum to the last score (RLVER,
    arXiv 2507.03112, for a rubric on the state of the user). passages: the judge scores each result of a tool alone,
    next to the question and the last agent message, up to 32: all that were `retrieved`, or those that this message has
    `cited` as [1], [2]. The value is their mean, 0 without a passage, earned at the step that retrieved each (evidence
    purity of Select Less, Reason More, for a rubric on whether a passage supports the answer). each_step: a judge that
    labels steps; a good step earns 1, a bad one -1, a neutral or redundant one 0, each divided by the number of agent
    steps, so that the value is their mean, -1 to 1 (SEAgent, arXiv 2508.04700). shares_repeats: a step, or window, that
    reads as n earlier ones of the trajectory do earns its label divided by the square root of n + 1, so that doing the
    same again pays less and less (the counts of ONI, arXiv 2410.23022). attribute: the judge also says which
    steps brought the score about, and each earns its share of it, by criterion; they sum to the score (Sotopia-RL,
    arXiv 2508.03905). speakers: of `attribute`, the agents whose steps can earn, all without it.
    """

    title: ClassVar[str] = "Judge (language model)"

    judge: Name
    criterion: Annotated[str, msgspec.Meta(min_length=1, max_length=200)] | None = None
    otherwise: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    timeout_seconds: Annotated[float, msgspec.Meta(gt=0, le=300)] = 60.0
    each_turn: bool = False
    passages: Literal["retrieved", "cited"] | None = None
    each_step: bool = False
    shares_repeats: bool = False
    attribute: bool = False
    speakers: Annotated[tuple[str, ...], msgspec.Meta(max_length=100)] = ()

    def require_sense(self) -> None:
        if self.shares_repeats and not self.each_step:
            raise InvalidRecord(
                "only labels of steps are shared; set `each_step`, or remove it.", pointer="/shares_repeats"
            )
        if self.speakers and not self.attribute:
            raise InvalidRecord(
                "names the agents whose steps can earn the score, which only `attribute` reads; set that to true, or "
                "leave speakers out.",
                pointer="/speakers",
            )
        if self.attribute and (self.each_turn or self.passages is not None):
            raise InvalidRecord(
                "the score of the whole is attributed to its steps, and turns or passages have scores already; use a "
                "second component for the other.",
                pointer="/attribute",
            )
        if self.each_step:
            given = {
                "criterion": self.criterion is not None,
                "otherwise": self.otherwise is not None,
                "each_turn": self.each_turn,
                "passages": self.passages is not None,
                "attribute": self.attribute,
            }
            for name, is_given in given.items():
                if is_given:
                    raise InvalidRecord(
                        "a judge that labels each step reads no such field; remove it.", pointer=f"/{name}"
                    )
        if self.each_turn and self.passages is not None:
            raise InvalidRecord(
                "a judge scores turns or passages; use a second component for the other.", pointer="/passages"
            )


class Agreement(ComponentPart, frozen=True, kw_only=True, tag="agreement"):
    """Whether the answer is that of the other inputs of its group, or of the group that metadata.twin names (the same
    question in other words): 0 to 1 (Co-Reward, arXiv 2508.00410). The answer is the last message, or what the first
    group of `expression` (RE2) matched last in it. It pays agreement, not truth: use it with a twin, and next to a
    verifier. vote: `majority` pays 1 for the answer that most gave, `share` the share of those who gave the same.
    """

    title: ClassVar[str] = "Agreement of a group"
    expression: Expression | None = None
    vote: Annotated[str, msgspec.Meta(pattern="^(majority|share)$")] = "majority"

    def require_sense(self) -> None:
        if self.expression is not None:
            require_expression(self.expression)


class Improvement(ComponentPart, frozen=True, kw_only=True, tag="improvement"):
    """The value of another component less that of the attempt before, by metadata.attempt of the inputs of a group; 0
    for the first attempt (Retroformer, arXiv 2308.02151). With values from a to b, it is within a - b and b - a. Along
    attempts it sums to the last value less the first, so a bad first attempt pays: give the component a weight, too.
    """

    title: ClassVar[str] = "Improvement over the attempt before"
    component: Name


ModelPart = RewardModelPart | CriterionPart | Novelty | GoalLikenessPart  # what a model computes
GroupComponent = Agreement | Improvement
Component = (
    RewardModelPart
    | CriterionPart
    | Novelty
    | GoalLikenessPart
    | StepPenalty
    | TokenPenalty
    | RepetitionPenalty
    | ToolFormat
    | ToolMatch
    | Pattern
    | Verifier
    | JudgePart
    | AnswerMatch
    | EntityMatch
    | Milestones
    | Logged
    | UnitTests
    | RiskMap
    | GuiAction
    | EvidenceMatch
    | ObservationUse
    | BySpeaker
    | Subgoals
    | KeyNodeShare
    | Agreement
    | Improvement
    | PythonProgram
    | PolicyChecks
)
