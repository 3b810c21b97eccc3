"""How an endpoint decides about the next action of an agent."""

from collections.abc import Collection
from typing import Annotated, Literal

import msgspec

from workers.errors import InvalidRecord
from workers.schema.logistic import logistic

Probability = Annotated[float, msgspec.Meta(gt=0, lt=1)]


class GuardSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """on_failure: what a caller does with an action while no decision can be had. ask_below: a reward, below which a
    person is asked. ask_when_uncertain: whether a person is asked about what the reward model is not sure of, or was
    not trained on (the flags `uncertain` and `out_of_distribution`). component: a model of the objective `violation`,
    which says how likely a violation comes. ask_above, deny_above: the probability of a violation, from which a person
    is asked, or the action denied. slope, intercept: what the log-odds of the model are multiplied by, and what is
    added, so that they are probabilities; from the model's report. check_weights: of checks by name, what a broken one
    adds to the log-odds; it decides nothing alone then."""

    on_failure: Literal["allow", "deny"] = "deny"
    ask_below: float | None = None
    ask_when_uncertain: bool = True
    component: str | None = None
    ask_above: Probability | None = None
    deny_above: Probability | None = None
    slope: Annotated[float, msgspec.Meta(ge=0, le=1000)] = 1.0
    intercept: Annotated[float, msgspec.Meta(ge=-1000, le=1000)] = 0.0
    check_weights: dict[str, Annotated[float, msgspec.Meta(ge=0, le=1000)]] = {}

    @property
    def has_probability(self) -> bool:
        return self.ask_above is not None or self.deny_above is not None

    def probability(self, no_violation: float | None, broken: Collection[str]) -> float:
        """Of a violation: the log-linear factor of a Markov logic network with one rule for each check and one for the
        model, as in ShieldAgent (arXiv 2503.22738), given what is observed. no_violation: the model's log-odds that
        none comes; None without a model. broken: names of checks."""
        odds = self.intercept + sum(self.check_weights.get(name, 0.0) for name in broken)
        return logistic(odds - self.slope * (no_violation or 0.0))

    def require_sense(self, components: Collection[str], checks: Collection[str]) -> None:
        """components: of reward models, by name. checks: by name. Raises InvalidRecord."""
        if self.component is not None and self.component not in components:
            raise InvalidRecord(
                f"there is no reward model {self.component!r} among the components; there are "
                f"{', '.join(components) or 'none'}.",
                pointer="/component",
            )
        if unknown := next((name for name in self.check_weights if name not in checks), None):
            raise InvalidRecord(
                f"there is no check {unknown!r}; there are {', '.join(checks) or 'none'}.",
                pointer="/check_weights",
            )
        if self.has_probability and self.component is None and not self.check_weights:
            raise InvalidRecord(
                "the probability of a violation needs a `component`, `check_weights` or both.",
                pointer="/ask_above" if self.ask_above is not None else "/deny_above",
            )
        if not self.has_probability and (self.component is not None or self.check_weights):
            raise InvalidRecord(
                "nothing is decided by the probability of a violation; set `ask_above` or `deny_above`.",
                pointer="/component" if self.component is not None else "/check_weights",
            )
        if None not in (self.ask_above, self.deny_above) and self.ask_above >= self.deny_above:  # type: ignore[operator]
            raise InvalidRecord("ask_above must be below deny_above.", pointer="/ask_above")
