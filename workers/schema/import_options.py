"""What can be said of a public reward model that is imported. No torch here: commands, pages and the API check it."""

import math
from collections.abc import Mapping
from dataclasses import Field, asdict, dataclass, field, fields
from typing import Any

from workers.errors import RewardError

# Types of public models, in the order in which they are tried; each is a file of `workers.importing`.
TYPES = (
    "sequence-classifier",
    "gated-rewards",
    "internlm2",
    "token-classifier",
    "process-classifier",
    "value-head",
    "step-tag",
    "implicit-process",
    "generative-judge",
    "goal-likeness",
)
OWN_TRAJECTORIES = "trajectories"  # as what rewards are calibrated on: those of the project
_MOST_TEXT = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOptions:
    """Empty values: as the checkpoint says. `help` of a field is shown by commands, pages and the API; one with `path`
    is a path on the machine, which only the command of the operator takes."""

    type: str = field(default="", metadata={"help": f"of the public model: {', '.join(TYPES)}"})
    label: str = field(
        default="", metadata={"help": "the output of a classifier that is the reward: name or number"}
    )
    against: str = field(
        default="", metadata={"help": "an output that is subtracted from the one named by label"}
    )
    labels: str = field(default="", metadata={"help": "names of the outputs, in order, separated by commas"})
    text_form: str = field(
        default="",
        metadata={
            "help": "how a classifier is shown a conversation: template (its chat template), pair (question, answer) "
            "or text (all messages with the names of their roles)"
        },
    )
    max_tokens: int = field(default=0, metadata={"help": "tokens that are read of an item, at most"})
    step_token: str = field(
        default="",
        metadata={"help": "of a process reward model: what stands after each step, \\n being a new line"},
    )
    step_layout: str = field(
        default="",
        metadata={
            "help": "how a process reward model is shown steps: plain (text), chat (its template) or turns (each step "
            "a message); a type takes some of these"
        },
    )
    step_value: str = field(
        default="", metadata={"help": "of a process reward model: probability or logit of the good class"}
    )
    aggregation: str = field(
        default="",
        metadata={
            "help": "how step rewards of a process reward model make one reward: min, mean, product or last; of "
            "implicit-process also sum"
        },
    )
    good_label: str = field(
        default="", metadata={"help": "the class, or the word, of a good step: name or number"}
    )
    bad_label: str = field(default="", metadata={"help": "the word of a bad step, for the type step-tag"})
    reference: str = field(
        default="",
        metadata={
            "help": "the folder of the model that a policy was trained from, for the type implicit-process",
            "path": True,
        },
    )
    beta: float = field(
        default=0.0, metadata={"help": "of the type implicit-process: what log-ratios are multiplied by"}
    )
    prompts: str = field(
        default="",
        metadata={
            "help": "a TOML file of what a judge is asked, for the type generative-judge; by default, Touchstone's own "
            "questions",
            "path": True,
        },
    )
    critique_tokens: int = field(
        default=0, metadata={"help": "tokens that a judge may write before its verdict, at most"}
    )

    goal: str = field(
        default="",
        metadata={
            "help": "of the type goal-likeness: a text of what is to be seen where the task is done, such as 'a cart "
            "with its pole upright'"
        },
    )
    baseline: str = field(
        default="", metadata={"help": "of the type goal-likeness: a text of what is seen otherwise: 'a cart'"}
    )
    alpha: float = field(
        default=0.0,
        metadata={
            "help": "of the type goal-likeness: how much only the direction from baseline to goal counts, up to 1; 0.5 "
            "where there is a baseline"
        },
    )
    pictures: str = field(
        default="",
        metadata={
            "help": "of the type goal-likeness: last, a trajectory is worth its last picture, or each, the mean of "
            "those after each agent step"
        },
    )

    @classmethod
    def parse(cls, values: Mapping[str, Any], *, pointer: str = "/options") -> "ImportOptions":
        """Raises RewardError for an unknown option, and for a value of another type."""
        known = {each.name: type(each.default) for each in fields(cls)}
        for name, value in values.items():
            if name not in known:
                raise RewardError(
                    f"unknown option {name!r}; known are {', '.join(known)}.", pointer=f"{pointer}/{name}"
                )
            if type(value) is not known[name] and not (known[name] is float and type(value) is int):
                kind = "text" if known[name] is str else "a number"
                raise RewardError(f"{name} must be {kind}.", pointer=f"{pointer}/{name}")
            if isinstance(value, str) and len(value) > _MOST_TEXT:
                raise RewardError(
                    f"{name} has {len(value)} characters; at most {_MOST_TEXT} are read.",
                    pointer=f"{pointer}/{name}",
                )
        found = cls(**values)
        if found.type and found.type not in TYPES:
            raise RewardError(
                f"there is no type {found.type!r}; known are {', '.join(TYPES)}.", pointer=f"{pointer}/type"
            )
        if not (math.isfinite(found.beta) and 0 <= found.beta <= 1000):
            raise RewardError("beta must be above 0 and at most 1000.", pointer=f"{pointer}/beta")
        if not (math.isfinite(found.alpha) and 0 <= found.alpha <= 1):
            raise RewardError("alpha must be above 0 and at most 1.", pointer=f"{pointer}/alpha")
        if found.max_tokens and not 64 <= found.max_tokens <= 1_000_000:
            raise RewardError("max_tokens must be between 64 and 1,000,000.", pointer=f"{pointer}/max_tokens")
        return found

    @classmethod
    def without_paths(cls) -> list["Field[Any]"]:
        """The options that anyone may give."""
        return [option for option in fields(cls) if not option.metadata.get("path")]

    def given(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value}

    def require_only(self, type_: str, known: tuple[str, ...]) -> None:
        """Raises RewardError for an option that a type of model does not read."""
        for name in self.given():
            if name not in ("type", "max_tokens", *known):
                raise RewardError(
                    f"{name} means nothing to a model of the type {type_}; leave it out"
                    + (f", or use {', '.join(known)}." if known else "."),
                    pointer=f"/options/{name}",
                )
