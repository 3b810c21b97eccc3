"""Drafts of reward programs by a language model: a draft, a trial on trajectories, a critic, and revisions.

After Text2Reward (Xie et al., arXiv 2309.11489): code is corrected by the errors of its execution, and by feedback.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import msgspec

from workers.errors import InvalidRecord
from workers.programs.excerpts import quotes, wrongly_paid
from workers.programs.sandbox import ProgramFailure, run_program
from workers.programs.source import read_program
from workers.prompts.templates import Prompt, prompt, quoted

T = TypeVar("T")
MOST_ROUNDS = 4
_MOST_VALUES = 30  # trajectories whose value the critic sees


class LanguageModel(Protocol):
    """`workers.llm.client.LLMClient` is one."""

    def ask(self, prompt: Prompt, shape: type[T], check: Callable[[T], None] = ...) -> T: ...


class ProgramCode(msgspec.Struct):
    code: str


class ProgramCritique(msgspec.Struct):
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Attempt:
    """problem: what was wrong with the code; None for the last one, where nothing was found. found_by: `source`,
    `trial` or `critic`. quotes: whether the problem may have words of a trajectory."""

    code: str
    problem: str | None = None
    found_by: str | None = None
    quotes: bool = False


@dataclass(frozen=True, slots=True)
class TrialTrajectory:
    """plain: of `plain_item`. about: what is known of it, such as its outcome, for the critic to compare. excerpt: what
    the critic may read of it, none where it reads values only."""

    plain: dict[str, Any]
    about: Mapping[str, Any]
    excerpt: tuple[Mapping[str, Any], ...] = ()


def draft_program(
    model: LanguageModel,
    *,
    task: str,
    trajectories: Sequence[TrialTrajectory],
    comments: Sequence[str] = (),
    code: str | None = None,
    rounds: int = MOST_ROUNDS,
    seconds: float = 1.0,
) -> list[Attempt]:
    """The attempts, the last of which is the draft. It may have a problem, where the rounds were used up.

    code: what to revise by the comments, instead of a first draft. Raises NoAnswer, RewardError.
    """
    given = {"task": quoted(task), "comments": quoted(list(comments))}
    if code is None:
        written = model.ask(prompt("draft_program", 1, **given), ProgramCode).code
    else:
        written = _revised(model, given, code, "People have commented on the code; change what they ask for.")
    attempts: list[Attempt] = []
    while True:
        attempt = _tried(model, given, written, trajectories, seconds)
        attempts.append(attempt)
        if attempt.problem is None or len(attempts) >= rounds:
            return attempts
        written = _revised(model, given, written, attempt.problem)


def _revised(model: LanguageModel, given: Mapping[str, str], code: str, problem: str) -> str:
    asked = prompt("revise_program", 1, **given, code=quoted(code), problem=quoted(problem))
    return model.ask(asked, ProgramCode).code


def _tried(
    model: LanguageModel,
    given: Mapping[str, str],
    code: str,
    trajectories: Sequence[TrialTrajectory],
    seconds: float,
) -> Attempt:
    """The code with what is wrong with it, and what found that."""
    try:
        program = read_program(code)
    except InvalidRecord as error:
        return Attempt(code, error.message, "source")
    results = run_program(program, [each.plain for each in trajectories], seconds)
    values = list[float]()
    for result in results:
        if isinstance(result, ProgramFailure):
            return Attempt(code, result.message, "trial", quotes=True)
        values.append(result.reward)
    return _criticised(model, given, code, trajectories, values)


def _criticised(
    model: LanguageModel,
    given: Mapping[str, str],
    code: str,
    trajectories: Sequence[TrialTrajectory],
    values: Sequence[float],
) -> Attempt:
    rows = [
        {**each.about, "value": round(value, 4)} for each, value in zip(trajectories, values, strict=True)
    ]
    places = wrongly_paid(values, [each.about for each in trajectories])
    read = [place for place in places if trajectories[place].excerpt]
    values_and_code = {**given, "code": quoted(code), "values": "\n".join(map(quoted, rows[:_MOST_VALUES]))}
    if read:
        shown = (quoted({**rows[place], "excerpt": trajectories[place].excerpt}) for place in read)
        asked = prompt("criticise_program", 2, **values_and_code, excerpts="\n".join(shown))
    else:
        asked = prompt("criticise_program", 1, **values_and_code)
    problem = model.ask(asked, ProgramCritique).problem
    if problem is None:
        return Attempt(code)
    own = [code, *given.values()]
    return Attempt(
        code, problem, "critic", quotes=quotes(problem, [trajectories[place].excerpt for place in read], own)
    )
