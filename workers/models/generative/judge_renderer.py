"""What an imported judge is asked, as tokens, and what its answer is worth."""

from collections.abc import Callable, Sequence
from typing import Any

from workers.errors import RewardError
from workers.models.generative.judge_prompts import JudgePrompts, JudgeQuestion
from workers.models.generative.verdicts import VerdictPrompt, VerdictRenderer, Words, content_trajectory
from workers.prompts.templates import Prompt, filled_prompt
from workers.prompts.trajectory_text import plain_task_and_answer
from workers.schema import Trajectory
from workers.schema.logistic import softmax
from workers.text import Content, ConversationRenderer


class JudgeRenderer(VerdictRenderer):
    """judge: its questions. Of a scale the reward is the expected point; of two verdicts the log-odds of the first."""

    def __init__(self, conversations: ConversationRenderer, judge: JudgePrompts) -> None:
        self.judge = judge
        self.mark = judge.mark
        self.before_verdict = judge.before_verdict
        super().__init__(conversations, critique_tokens=judge.critique_tokens)
        self.compares = judge.pair is not None
        self.points = self._point_ids(judge.run.scale)

    @property
    def prompts(self) -> list[str]:
        return [self.judge.name]

    def render(self, content: Content, *, by: str | None = None) -> VerdictPrompt:
        """by: not read; an imported judge follows no principles."""

        def ask(run: Trajectory, characters: int, shown: str) -> Prompt:
            task, answer = plain_task_and_answer(run, characters)
            return self._filled(self.judge.run, task=task, answer=answer, run=shown)

        return self._fitted_question([content_trajectory(content)], ask)

    def pair(self, a: Content, b: Content, *, by: str | None = None) -> VerdictPrompt:
        question = self.judge.pair
        if question is None:
            raise RewardError("this judge has no question about two trajectories ([pair] of its prompts).")

        def ask(first: Trajectory, second: Trajectory, characters: int, *shown: str) -> Prompt:
            task, answer_a = plain_task_and_answer(first, characters)
            _, answer_b = plain_task_and_answer(second, characters)
            return self._filled(
                question, task=task, answer_a=answer_a, answer_b=answer_b, a=shown[0], b=shown[1]
            )

        return self._fitted_question([content_trajectory(a), content_trajectory(b)], ask)

    def verdict(self, prompt: VerdictPrompt, log_prob: Callable[[int], float]) -> float:
        if prompt.is_pair or not self.points:
            return super().verdict(prompt, log_prob)
        chances = softmax([log_prob(id_) for id_, _ in self.points])
        return sum(chance * point for chance, (_, point) in zip(chances, self.points, strict=True))

    def settings(self) -> list[Any]:
        return [*super().settings(), self.judge.to_dict()]

    def _verdict_words(self) -> tuple[tuple[str, str], tuple[str, str]]:
        run, pair = self.judge.run, self.judge.pair
        words = run.verdicts or (run.scale[-1], run.scale[0])
        return (words[0], words[1]), (pair.verdicts[0], pair.verdicts[1]) if pair else ("A", "B")

    def _words(self, yes: str, no: str) -> Words:
        try:
            return super()._words(yes, no)
        except RewardError as error:
            raise RewardError(
                f"{error.message} Or name other verdicts, or use a shorter scale, such as 1 to 5.",
                pointer="/options/prompts",
            ) from None

    def _point_ids(self, scale: Sequence[str]) -> list[tuple[int, float]]:
        """The token of each point, after what all begin with."""
        ids = {point: self._verdict_ids(point) for point in scale}
        before = len(self.of_run.before)
        found = [(of[before] if len(of) > before else -1, float(point)) for point, of in ids.items()]
        shared = all(of[:before] == list(self.of_run.before) for of in ids.values())
        if not shared or len({id_ for id_, _ in found} - {-1}) < len(scale):
            raise RewardError(
                f"the points {', '.join(scale)} do not begin with different tokens in this model's vocabulary, so "
                "their probabilities cannot be read; use a shorter scale, such as 1 to 5.",
                pointer="/options/prompts",
            )
        return found

    def _filled(self, question: JudgeQuestion, **values: str) -> Prompt:
        return filled_prompt(self.judge.name, question.system, question.user, values)
