"""Components that are computed rather than learnt: one file each. A rule rates an item by what it holds."""

from collections.abc import Callable, Sequence
from typing import Any

from workers.engine.rules import (
    agreement,
    answers,
    entities,
    evidence,
    gui,
    key_nodes,
    length,
    logged,
    observation_use,
    pattern,
    policy_checks,
    programs,
    progress,
    repetition,
    risks,
    tools,
    unit_tests,
)
from workers.schema import ScoreInput
from workers.schema.components import (
    Agreement,
    Component,
    Pattern,
    RepetitionPenalty,
    StepPenalty,
    TokenPenalty,
    ToolFormat,
    ToolMatch,
)
from workers.schema.model_score import ModelScore
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

Count = Callable[[str], int]
RULES: dict[type, Callable[[Any, ScoreInput, Count], ModelScore]] = {
    StepPenalty: length.steps,
    TokenPenalty: length.tokens,
    RepetitionPenalty: repetition.rate,
    ToolFormat: tools.formatted,
    ToolMatch: tools.matched,
    Pattern: pattern.rate,
    AnswerMatch: answers.matched,
    EntityMatch: entities.matched,
    Milestones: progress.milestones,
    Logged: logged.replayed,
    GuiAction: gui.matched,
    EvidenceMatch: evidence.supported,
    ObservationUse: observation_use.rated,
    BySpeaker: logged.by_speaker,
    UnitTests: unit_tests.passed,
    RiskMap: risks.penalty,
    Subgoals: progress.subgoals,
    KeyNodeShare: key_nodes.rate,
    PolicyChecks: policy_checks.rate,
}


# Of all items of a request together, which see the others of their group.
GROUP_RULES: dict[type, Callable[[Any, Sequence[ScoreInput]], list[ModelScore]]] = {Agreement: agreement.rate}
# Of all items together because that is quicker; none sees another.
BATCH_RULES: dict[type, Callable[[Any, Sequence[ScoreInput]], list[ModelScore]]] = {
    PythonProgram: programs.rate
}
RULES_OF_ALL = GROUP_RULES | BATCH_RULES


def rate(rule: Component, item: ScoreInput, count: Count) -> ModelScore:
    """count: of the tokens in a text. Raises RewardError for an item without what the rule needs."""
    return RULES[type(rule)](rule, item, count)
