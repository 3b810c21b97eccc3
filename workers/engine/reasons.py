"""Reasons for the rewards of an endpoint: of each component whose model gives them, for what it adds to the reward."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workers.engine.batcher import ServedModel
from workers.errors import RewardError
from workers.schema import ScoreInput
from workers.schema.endpoints import EndpointSpec, RewardModelPart
from workers.schema.reasons import Reason, weighted

MOST_CHARACTERS = 2**23  # of the trajectories that are scored without a word, for all items of a request


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

    def find(self, items: Sequence[ScoreInput]) -> list[dict[str, list[Reason]]]:
        """By item and component, before transforms. Takes seconds: not on an event loop.

        items: as the version reads them. Raises RewardError at `/<index>`.
        """
        share = MOST_CHARACTERS // max(1, len(items) * len(self.parts))
        return [self._find_for(item, index, share) for index, item in enumerate(items)]

    def _find_for(self, item: ScoreInput, index: int, share: int) -> dict[str, list[Reason]]:
        found: dict[str, list[Reason]] = {}
        for part in self.parts:
            model: Any = self.models[part.model].model
            try:
                reasons: list[Reason] = model.reasons(item.content, most_characters=share)
            except RewardError as error:
                raise error.at(f"/{index}") from None
            found[part.name] = [weighted(reason, part.weight) for reason in reasons]
        return found
