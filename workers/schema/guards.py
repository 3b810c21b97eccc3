"""How an endpoint decides about the next action of an agent."""

from typing import Literal

import msgspec


class GuardSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """on_failure: what a caller does with an action while no decision can be had. ask_below: a reward, below which a
    person is asked. ask_when_uncertain: whether a person is asked about what the reward model is not sure of, or was
    not trained on (the flags `uncertain` and `out_of_distribution`)."""

    on_failure: Literal["allow", "deny"] = "deny"
    ask_below: float | None = None
    ask_when_uncertain: bool = True
