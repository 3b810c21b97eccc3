"""A draft of a reward program in a folder.

config.json             `DraftConfig`
trajectories.jsonl.zst  what the drafts are tried on
answers.jsonl           cached answers of the language model (workers.llm.client)
result.json             {"usage", "prompts", "code", "attempts": [{"found_by", "problem"}]}

A problem that quotes a trajectory is left out of the result, and what the critic answered is not cached.
"""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import msgspec

from workers.json_files import write_json
from workers.llm import LLMServer
from workers.llm.client import AnswersFile, LLMClient
from workers.programs.drafting import MOST_ROUNDS, TrialTrajectory, draft_program
from workers.programs.excerpts import excerpt
from workers.programs.plain_items import plain_item
from workers.schema import ScoreInput, Trajectory, read_trajectories


class DraftConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """code: what is revised by the comments; without it, a first draft is written. excerpts: whether the critic reads
    excerpts of trajectories."""

    server: LLMServer
    task: str
    comments: list[str] = []
    code: str | None = None
    excerpts: bool = False
    rounds: int = MOST_ROUNDS


class DraftAnswers(AnswersFile):
    """Caches code, which is stored as a version anyway; not critiques, which may have words of trajectories."""

    def keep(self, key: str, answer: Any, about: Mapping[str, str]) -> None:
        if "code" in answer:
            super().keep(key, answer, about)


def run_draft_job(folder: Path) -> dict[str, Any]:
    """Everything between config.json and result.json; the result. Raises RewardError where no call can succeed, and
    where the model gives no answer that can be read."""
    config = msgspec.json.decode((folder / "config.json").read_bytes(), type=DraftConfig)
    model = LLMClient(config.server, DraftAnswers(folder / "answers.jsonl"))
    attempts = draft_program(
        model,
        task=config.task,
        trajectories=[
            _tried(each, with_excerpt=config.excerpts)
            for each in read_trajectories(folder / "trajectories.jsonl.zst")
        ],
        comments=config.comments,
        code=config.code,
        rounds=config.rounds,
    )
    result = {
        "usage": asdict(model.usage),
        "prompts": sorted(model.asked),
        "code": attempts[-1].code,
        "attempts": [
            {"found_by": attempt.found_by, "problem": None if attempt.quotes else attempt.problem}
            for attempt in attempts
        ],
    }
    write_json(folder / "result.json", result)
    return result


def _tried(trajectory: Trajectory, *, with_excerpt: bool) -> TrialTrajectory:
    about = {
        "agent_steps": len(trajectory.agent_steps),
        "success": trajectory.success,
        "reward": trajectory.reward,
    }
    read = excerpt(trajectory) if with_excerpt else ()
    return TrialTrajectory(plain_item(ScoreInput(content=trajectory)), about, read)
