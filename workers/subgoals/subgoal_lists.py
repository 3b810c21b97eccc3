"""Lists of subgoals, as the component `subgoals` reads them in the metadata of a task."""

from collections.abc import Sequence
from typing import Annotated

import msgspec

from workers.errors import InvalidRecord
from workers.schema import Trajectory
from workers.schema.patterns import compiled

MOST_SUBGOALS = 20
LONGEST_GOAL = 200
MOST_RUNS = 2  # that succeeded, of a task, which the language model reads


class Subgoal(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """goal: what is reached, for people. expression: RE2, found in a step once it is reached. weight: its share."""

    goal: Annotated[str, msgspec.Meta(max_length=LONGEST_GOAL)]
    expression: Annotated[str, msgspec.Meta(min_length=1, max_length=2000)]
    weight: Annotated[float, msgspec.Meta(gt=0, le=1000)] = 1.0


def require_subgoals(
    subgoals: Sequence[Subgoal], successful: Sequence[Trajectory] = (), *, least: int = 1
) -> None:
    """Raises InvalidRecord, with a pointer, for a list that cannot be used: one of the wrong length, with an expression
    that RE2 does not take, that every text has or that stands twice, or that none of the successful runs has."""
    if not least <= len(subgoals) <= MOST_SUBGOALS:
        raise InvalidRecord(
            f"There are {len(subgoals)} subgoals; give {least} to {MOST_SUBGOALS}.", pointer="/subgoals"
        )
    texts = [agent_run_text(run) for run in successful]
    seen = set[str]()
    for place, subgoal in enumerate(subgoals):
        at = f"/subgoals/{place}/expression"
        try:
            expression = compiled(subgoal.expression)
        except InvalidRecord as error:
            raise InvalidRecord(error.message, pointer=at) from None
        if expression.search("") is not None:
            raise InvalidRecord("The expression is found in every text.", pointer=at)
        if subgoal.expression in seen:
            raise InvalidRecord("The expression stands twice.", pointer=at)
        seen.add(subgoal.expression)
        if texts and not any(expression.search(text) for text in texts):
            raise InvalidRecord("The expression is found in none of the runs that succeeded.", pointer=at)


def reached_counts(subgoals: Sequence[Subgoal], trajectories: Sequence[Trajectory]) -> list[int]:
    """In how many of the trajectories each subgoal is reached."""
    texts = [agent_run_text(each) for each in trajectories]
    return [
        sum(compiled(subgoal.expression).search(text) is not None for text in texts) for subgoal in subgoals
    ]


def agent_run_text(run: Trajectory) -> str:
    """What the component looks through (`engine.rules.progress.by_step`, within both), without loading the engine."""
    texts, has_begun = list[str](), False
    for step in run.steps:
        has_begun = has_begun or step.source == "agent"
        if not has_begun or step.source not in ("agent", "environment"):
            continue
        calls = (f"{call.name}({call.arguments_text})" for call in step.tool_calls)
        results = (part.text or "" for result in step.observation for part in result.content)
        texts += filter(None, [step.reasoning or "", step.text, *calls, *results])
    return "\n".join(texts)
