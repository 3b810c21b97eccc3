"""A request that was answered: what was asked, by which version, and the scores."""

from dataclasses import dataclass
from typing import Any

from apps.rewards.serving.requests import ScoreRequest
from workers.engine import Score


@dataclass(frozen=True, slots=True)
class Scored:
    endpoint: str
    version: int
    asked: ScoreRequest
    scores: list[Score]
    seconds: float

    @property
    def tokens(self) -> int:
        return sum(score.tokens for score in self.scores)

    @property
    def rewards(self) -> list[float]:
        return [score.reward for score in self.scores]

    @property
    def flags(self) -> list[str]:
        """Those that any of the results has."""
        return sorted({flag for score in self.scores for flag in score.flags})

    def head(self) -> dict[str, Any]:
        return {"endpoint": self.endpoint, "version": self.version}

    def results(self) -> list[dict[str, Any]]:
        return [self._result(score) for score in self.scores]

    def usage(self) -> dict[str, Any]:
        return {
            "inputs": len(self.scores),
            "tokens": self.tokens,
            "cached_tokens": sum(score.cached_tokens for score in self.scores),
            "milliseconds": round(self.seconds * 1000, 1),
        }

    def _result(self, score: Score) -> dict[str, Any]:
        steps = [{"agent_step": index, "reward": reward} for index, reward in enumerate(score.steps)]
        return {
            "reward": score.reward,
            "raw": score.raw,
            "baseline": score.baseline,
            "std": score.std if self.asked.uncertainty else None,
            "steps": steps if self.asked.steps else None,
            "criteria": score.criteria,
            "components": score.components,
            "flags": score.flags,
            "tokens": score.tokens,
            "cached_tokens": score.cached_tokens,
        }
