"""How a process reward model that comes from elsewhere is shown the steps of an agent, and where it is read."""

from dataclasses import asdict, dataclass
from typing import Any, Literal

StepLayout = Literal["chat", "turns", "plain"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFormat:
    """layout: `chat`: the model's chat template, consecutive agent steps in one message, the separator after each of
    them, where the model is read. `turns`: each agent step is a message of the user, answered by `answer`, and the
    model is read at the token before the answer. `plain`: no template; the text of the task, then the agent steps with
    the separator after each.

    Of `plain` only: after_task is written between the task and the first step, before_step before each step that does
    not begin so ({n}: its number, from 1), after_step behind the separator of a step that another one follows. whole:
    the text is tokenised in one piece, else the task, each step and each separator separately.
    """

    layout: StepLayout
    separator: str = ""
    answer: str = ""
    after_task: str = ""
    before_step: str = ""
    after_step: str = ""
    whole: bool = False

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)
