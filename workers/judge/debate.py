"""A judge that first hears two advocates, one for each trajectory, at twice the calls of a comparison.

Irving, Christiano and Amodei, https://arxiv.org/abs/1805.00899; Khan et al., https://arxiv.org/abs/2402.06782, of whom
this is one turn of each side, at the same time, with evidence that can be looked up: claims name steps. Whoever decides
is shown both trajectories too, and is told that advocates are there to win.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

import msgspec

from workers.errors import RewardError
from workers.judge.aggregation import CriterionComparison, clip_reason, require_reason, require_step
from workers.judge.rubric import RubricJudge, define_answer
from workers.prompts.pictures import TrajectoryView
from workers.prompts.templates import Prompt, quoted
from workers.schema import Trajectory

DEBATE = "debate"  # the approach
SIDE, VERDICT = "debate_side", "debate_verdict"  # the prompts, version 1


class _Side(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """merit: of the advocate's own trajectory. fault: of the other."""

    merit: str
    merit_step: int | None
    fault: str
    fault_step: int | None


class DebateJudge(RubricJudge):
    """Compares as a RubricJudge does: for each sample the advocates are asked once, and what they argue goes into the
    questions of both orders."""

    def score(self, run: Trajectory, *, about: Mapping[str, str] | None = None) -> Any:
        raise RewardError("A debate compares two trajectories; use a judge without it to score one.")

    def compare(
        self, a: Trajectory, b: Trajectory, *, about: Mapping[str, str] | None = None
    ) -> list[CriterionComparison]:
        steps, (view_a, view_b) = (len(a.steps), len(b.steps)), self._views(a, b)

        def ask_both(draw: int | None) -> tuple[Prompt, Prompt]:
            of_a = self._side(view_a, view_b, steps, draw, about)
            of_b = self._side(view_b, view_a, steps[::-1], draw, about)
            return self._hearing(view_a, view_b, of_a, of_b), self._hearing(view_b, view_a, of_b, of_a)

        return self._compare_by(ask_both, steps, about)

    def _hearing(self, a: TrajectoryView, b: TrajectoryView, of_a: str, of_b: str) -> Prompt:
        return self._of_two(VERDICT, a, b, {"side_a": of_a, "side_b": of_b})

    def _side(
        self,
        own: TrajectoryView,
        other: TrajectoryView,
        steps: tuple[int, int],
        draw: int | None,
        about: Mapping[str, str] | None,
    ) -> str:
        """What the advocate of `own` argues, quoted: a line for each criterion. steps: of own and other."""
        pictures = (*own.pictures("your run"), *other.pictures("the other run"))
        question = self._question(SIDE, own=own.text, other=other.text).showing(pictures)
        shape = define_answer("Sides", dict.fromkeys(self._keys, _Side))
        check = partial(self._check_side, *steps)
        answer, _ = self.model.complete_with_logprobs(question, shape, check, about=about, draw=draw)
        return "\n".join(quoted(_arguments(key, getattr(answer, key))) for key in self._keys)

    def _check_side(self, steps_own: int, steps_other: int, answer: Any) -> None:
        for key in self._keys:
            side: _Side = getattr(answer, key)
            require_step(side.merit_step, steps_own, f"/{key}/merit_step")
            require_step(side.fault_step, steps_other, f"/{key}/fault_step")
            require_reason(side.merit, side.merit_step is not None, f"/{key}/merit")
            require_reason(side.fault, side.fault_step is not None, f"/{key}/fault")


def _arguments(key: str, side: _Side) -> dict[str, object]:
    return {
        "key": key,
        "merit": clip_reason(side.merit),
        "merit_step": side.merit_step,
        "fault": clip_reason(side.fault),
        "fault_step": side.fault_step,
    }
