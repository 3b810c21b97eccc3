"""The risks of a trajectory's steps, as a map: a row for each risk, from the first step to the last."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workers.schema.risk_maps import risk_map

_MOST_CELLS = 60  # of a row; more steps share cells


@dataclass(frozen=True, slots=True)
class RiskCell:
    """The highest risk of neighbouring steps. place: of the cell in its row. step: where it is highest, by its index
    among all steps."""

    place: int
    step: int
    risk: float


@dataclass(frozen=True, slots=True)
class RiskRow:
    name: str
    cells: list[RiskCell]

    @property
    def highest(self) -> RiskCell:
        return max(self.cells, key=lambda cell: cell.risk)


def risk_rows(metadata: Mapping[str, Any], agent_steps: Sequence[int]) -> list[RiskRow]:
    """By metadata.risks, as the component `risk_map` reads it; none where it is anything else.

    agent_steps: their indices among all steps.
    """
    found = risk_map(metadata.get("risks"), len(agent_steps))
    return [RiskRow(name, _cells(risks, agent_steps)) for name, risks in (found or {}).items()]


def _cells(risks: Sequence[float], agent_steps: Sequence[int]) -> list[RiskCell]:
    count = min(len(risks), _MOST_CELLS)
    bounds = [place * len(risks) // count for place in range(count + 1)]
    cells = []
    for place in range(count):
        highest = max(range(bounds[place], bounds[place + 1]), key=risks.__getitem__)
        cells.append(RiskCell(place, agent_steps[highest], risks[highest]))
    return cells
