"""Values that reward programs compute."""

from collections.abc import Sequence
from itertools import accumulate, pairwise

from workers.errors import RewardError
from workers.programs.plain_items import plain_item
from workers.programs.sandbox import ProgramFailure, ProgramResult, run_program
from workers.programs.source import read_program
from workers.schema import ScoreInput
from workers.schema.model_score import ModelScore
from workers.schema.program_part import PythonProgram

FAILED = "program_failed"  # the flag of an item that has `otherwise` because the code failed


def rate(part: PythonProgram, items: Sequence[ScoreInput]) -> list[ModelScore]:
    """From `low` to `high`, and so is what the steps have added up to after each. Raises RewardError at `/<index>`
    where the code fails and the part has no `otherwise`."""
    if part.code is None:
        raise RewardError(f"the code of the reward program {part.program} is missing here; deploy it again.")
    program = read_program(part.code)
    inputs = []
    for place, item in enumerate(items):
        try:
            inputs.append(plain_item(item))
        except RewardError as error:
            raise error.at(f"/{place}") from None
    found = []
    for place, result in enumerate(run_program(program, inputs, part.seconds)):
        count = items[place].step_count
        failure = failure_of(result, count)
        if isinstance(result, ProgramResult) and failure is None:
            found.append(score(part, result, count))
        elif part.otherwise is None:
            raise RewardError(
                f"the reward program {part.program or part.name} failed: {failure} Correct the code, or give the "
                f"component {part.name} an `otherwise`.",
                pointer=f"/{place}",
            )
        else:
            found.append(ModelScore.at_last_step(part.otherwise, count, flags=(FAILED,)))
    return found


def failure_of(result: ProgramResult | ProgramFailure, count: int) -> str | None:
    """In words, what is wrong with a result for `count` agent steps; None where nothing is."""
    if isinstance(result, ProgramFailure):
        return result.message
    if result.steps is not None and len(result.steps) != count:
        return (
            f"step_rewards returned {len(result.steps)} numbers, and the trajectory has {count} agent steps."
        )
    return None


def score(part: PythonProgram, result: ProgramResult, count: int) -> ModelScore:
    """What has been earned after each step is limited to `low` to `high`; after the last, it is the reward. So what
    `step_rewards` leaves of the reward belongs to the last step, and repeating a step earns no more than `high`."""
    if result.steps is None:
        return ModelScore.at_last_step(_limited(part, result.reward), count)
    earned = [0.0, *(_limited(part, total) for total in accumulate(result.steps))]
    earned[-1] = _limited(part, result.reward)
    return ModelScore.sum_of_steps([after - before for before, after in pairwise(earned)])


def _limited(part: PythonProgram, value: float) -> float:
    return min(max(value, part.low), part.high)
