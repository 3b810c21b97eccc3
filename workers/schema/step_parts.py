"""Components that read the steps of a run: what was observed, and the rewards that came with them."""

from typing import Annotated, ClassVar, Literal

import msgspec

from workers.errors import InvalidRecord
from workers.schema.part_base import ComponentPart, Expression, PartWeight, Share
from workers.schema.patterns import compiled

MilestoneWeight = Annotated[float, msgspec.Meta(gt=0, le=1_000_000)]
RewardBound = Annotated[float, msgspec.Meta(ge=-1_000_000, le=1_000_000)]


class Milestone(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """expression: in RE2 syntax. weight: relative to the other milestones."""

    expression: Expression
    weight: MilestoneWeight = 1.0


class Milestones(ComponentPart, frozen=True, kw_only=True, tag="milestones"):
    """The milestones reached / all milestones, by weight: 0 to 1, earned where each is first found
    (partial credit from logs: Reinforcement Learning for Machine Learning Engineering Agents). Repeating a milestone
    earns nothing.

    milestones: [{"expression": RE2, "weight": 1}]. within: what the agent `said`, what it has `seen` (observations and
    logs), or `both`. in_order: a milestone only counts after those before it.
    """

    title: ClassVar[str] = "Milestones"
    milestones: Annotated[tuple[Milestone, ...], msgspec.Meta(min_length=1, max_length=100)]
    within: Literal["said", "seen", "both"] = "seen"
    in_order: bool = False

    def require_sense(self) -> None:
        for index, milestone in enumerate(self.milestones):
            try:
                compiled(milestone.expression)
            except InvalidRecord as error:
                raise error.at(f"/milestones/{index}/expression") from None


class _RewardsThatCame(ComponentPart, frozen=True, kw_only=True):
    """low, high: what the reward of one step is limited to."""

    low: RewardBound = -1.0
    high: RewardBound = 1.0

    def require_sense(self) -> None:
        if not self.low <= 0 <= self.high:
            raise InvalidRecord(
                f"a step without a reward has 0, which is not between {self.low:g} and {self.high:g}; "
                "use a low of at most 0 and a high of at least 0.",
                pointer="/low" if self.low > 0 else "/high",
            )


class Logged(_RewardsThatCame, frozen=True, kw_only=True, tag="logged"):
    """The step rewards that came with the item, each limited to `low` to `high`, as their sum or `mean`.

    They are `metadata.step_rewards` of the item, a list by agent step, or else the `reward` of the trajectory's steps;
    a reward of an observation belongs to the agent step before it. An item without any is refused.
    """

    title: ClassVar[str] = "Step rewards that came with the item"
    total: Literal["sum", "mean"] = "mean"


class BySpeaker(_RewardsThatCame, frozen=True, kw_only=True, tag="by_speaker"):
    """Step rewards that came with the item by agent, plus the reward of all: between `low` and `high` (CoMAS:
    Co-Evolving Multi-Agent Systems via Interaction Rewards).

    The mean over the agents of each one's mean, times `own`, plus the outcome times 1 - `own`. The outcome is the
    trajectory's `reward`, limited as the steps are, and earned at the last step.

    own: 0 to 1. speakers: the agents that count, all without it; steps of others earn nothing.
    """

    title: ClassVar[str] = "Rewards by agent"
    own: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.5
    speakers: Annotated[tuple[str, ...], msgspec.Meta(max_length=100)] = ()


class UnitTests(ComponentPart, frozen=True, kw_only=True, tag="unit_tests"):
    """What an external test runner found, from metadata.tests: 0 to 1, at the last step (Agent-RLVR, arXiv 2506.11425).

    Sent as {"passed": 3, "failed": 1}, as {test: true}, as pytest-json-report writes it, or as `tests_status` of a
    SWE-bench report; {"error": "timed out"} is 0. verdict: the share of the value that only all tests together earn;
    the rest is the share of the tests that passed. Of SWE-bench, that is the share of FAIL_TO_PASS, and 0 where a test
    of PASS_TO_PASS failed. Run the tests where the agent cannot write: what it prints itself is no result.
    """

    title: ClassVar[str] = "Unit tests"
    verdict: Share = 0.5


class RiskMap(ComponentPart, frozen=True, kw_only=True, tag="risk_map"):
    """Named risks of each step, as a penalty: -1 to 0 (risk maps as a readable part of a planner's cost: Risk Map As
    Middleware, 2025). The page of a trajectory draws them.

    metadata.risks: {"collision": [a number from 0 to 1 for each agent step], ...}. risks: those that count, each with
    its weight; without it all count alike. over: `max`, the highest of a risk, paid where it rises, so that staying in
    danger costs once; or `mean` of the steps.
    """

    title: ClassVar[str] = "Risk map"
    risks: dict[Annotated[str, msgspec.Meta(min_length=1, max_length=100)], MilestoneWeight] = {}
    over: Literal["max", "mean"] = "max"


class ObservationUse(ComponentPart, frozen=True, kw_only=True, tag="observation_use"):
    """How good the results of the agent's tools are, as the mean over all: 0 to 1; 0 without one (ReSeek: correctness
    and utility of observations). Each step earns what its own results add.

    correctness_weight: of whether a result has all words of the `answer` of the reference; with 0, no reference is
    needed. utility_weight: of whether the agent uses the result later. at_least: how many of its words that were
    nowhere before must be in what the agent writes later.
    """

    title: ClassVar[str] = "Use of observations"
    reads_reference: ClassVar[bool] = True
    correctness_weight: PartWeight = 1.0
    utility_weight: PartWeight = 1.0
    at_least: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 2

    def require_sense(self) -> None:
        if not (self.correctness_weight or self.utility_weight):
            raise InvalidRecord(
                "must be above 0 where correctness_weight is 0: else nothing counts.",
                pointer="/utility_weight",
            )
