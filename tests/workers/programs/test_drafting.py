"""Drafts of reward programs: what the source, the trial and the critic find, is corrected."""

from collections.abc import Callable
from typing import Any, TypeVar

from workers.programs.drafting import (
    Attempt,
    ProgramCode,
    TrialTrajectory,
    draft_program,
)
from workers.prompts.templates import Prompt

T = TypeVar("T")
NO_CODE = "import os\ndef reward(trajectory):\n    return 1"
CRASHES = "def reward(trajectory):\n    return 1 / trajectory['n']"
IDLE = "def reward(trajectory):\n    return 1 - trajectory['n']"
GOOD = "def reward(trajectory):\n    return trajectory['n']"
TRIAL = [TrialTrajectory({"n": number}, {"moved": number}) for number in (0, 1, 2)]


class Scripted:
    """Answers in order, and keeps what was asked."""

    def __init__(self, *answers: str | None) -> None:
        self.answers, self.asked = list(answers), list[Prompt]()

    def ask(self, prompt: Prompt, shape: type[T], check: Callable[[T], None] = lambda _: None) -> T:
        self.asked.append(prompt)
        answer: Any = self.answers.pop(0)
        return shape(code=answer) if shape is ProgramCode else shape(problem=answer)


def user(prompt: Prompt) -> str:
    return prompt.messages[1]["content"]


def test_source_trial_and_critic_each_find_a_problem() -> None:
    said = "A trajectory that did not move gets most."
    model = Scripted(NO_CODE, CRASHES, IDLE, said, GOOD, None)
    attempts = draft_program(model, task="Move.", trajectories=TRIAL, comments=["Not by luck."])
    assert [(attempt.code, attempt.found_by) for attempt in attempts] == [
        (NO_CODE, "source"),
        (CRASHES, "trial"),
        (IDLE, "critic"),
        (GOOD, None),
    ]
    assert attempts[0].problem and attempts[0].problem.startswith("line 1: the module os is not available")
    assert (
        attempts[1].problem
        == "line 2: ZeroDivisionError: division by zero (in `return 1 / trajectory['n']`)."
    )
    assert attempts[2].problem == said
    names = [prompt.of.split()[0] for prompt in model.asked]
    assert names == [
        "draft_program.v1",
        "revise_program.v1",
        "revise_program.v1",
        "criticise_program.v1",
        "revise_program.v1",
        "criticise_program.v1",
    ]
    assert all('"Move."' in user(prompt) and '"Not by luck."' in user(prompt) for prompt in model.asked)
    assert '{"moved": 0, "value": 1.0}\n{"moved": 1, "value": 0.0}' in user(model.asked[3])
    assert said in user(model.asked[4])


def test_rounds_are_used_up() -> None:
    attempts = draft_program(Scripted(CRASHES, CRASHES), task="Move.", trajectories=TRIAL, rounds=2)
    assert len(attempts) == 2 and attempts[-1].found_by == "trial"


def test_code_that_is_there_is_revised_by_comments() -> None:
    model = Scripted(GOOD, None)
    attempts = draft_program(model, task="Move.", trajectories=TRIAL, comments=["It pays idling."], code=IDLE)
    assert attempts == [Attempt(GOOD)]
    assert "1 - trajectory" in user(model.asked[0]) and model.asked[0].of.startswith("revise_program")
