"""Reasons for the rewards of an endpoint: of each component whose model gives them, for what it adds to the reward."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from workers.engine.batcher import ServedModel
from workers.errors import RewardError
from workers.schema import ScoreInput
from workers.schema.components import RewardModelPart
from workers.schema.endpoints import EndpointSpec
from workers.schema.reasons import Reason, Rescoring, weighted

# Of the trajectories that are scored without a word, for all items of a request, as in `Rescoring`.
MOST_CHARACTERS = 2**23
MOST_TOKENS = 2**17


@dataclass(frozen=True, slots=True)
class ReasonComponents:
    """parts: the components that have a weight and a linear model."""

    parts: Sequence[RewardModelPart]
    models: Mapping[str, ServedModel]

    @classmethod
    def from_spec(cls, spec: EndpointSpec, models: Mapping[str, ServedModel]) -> "ReasonComponents":
        parts = [
            part
            for part in spec.components
            if isinstance(part, RewardModelPart) and part.weight and models[part.model].model.gives_reasons
        ]
        return cls(parts, models)

    def find(
        self, items: Sequence[ScoreInput], charge: Callable[[int], None]
    ) -> list[tuple[dict[str, list[Reason]], int]]:
        """By item: by component, before transforms; and the tokens of what was scored again. Takes seconds: not on an
        event loop.

        items: as the version reads them. charge: see `Rescoring`. Raises RewardError at `/<index>`.
        """
        count = max(1, len(items) * len(self.parts))
        limits = Rescoring(most_characters=MOST_CHARACTERS // count, most_tokens=MOST_TOKENS // count)
        return [self._find_for(item, index, limits, charge) for index, item in enumerate(items)]

    def _find_for(
        self, item: ScoreInput, index: int, limits: Rescoring, charge: Callable[[int], None]
    ) -> tuple[dict[str, list[Reason]], int]:
        found: dict[str, list[Reason]] = {}
        scored = [0]

        def charge_copies(tokens: int) -> None:
            charge(tokens)
            scored.append(tokens)

        for part in self.parts:
            served = self.models[part.model]
            model: Any = served.model
            rescoring = replace(limits, cache=served.cache, charge=charge_copies)
            try:
                reasons: list[Reason] = model.reasons(item.content, rescoring=rescoring)
            except RewardError as error:
                raise error.at(f"/{index}") from None
            found[part.name] = [weighted(reason, part.weight) for reason in reasons]
        return found, sum(scored)
