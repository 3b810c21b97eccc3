"""Objectives: what a model learns from, and the loss. One file each; to add one, add its file.

A file is found by its name, which is what recipes call it. It has pure loss functions (tensors in, tensors out) and
`OBJECTIVE`, a subclass of `Objective` that says which records it learns from. See docs/researchers.md.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, ClassVar

from torch import Tensor, nn

from workers.models.reward_model import Outputs, RewardFrom
from workers.schema import FeedbackRecord, OutcomeRecord, ScoreRecord, Text
from workers.schema.recipe import SINGLE, Recipe
from workers.schema.records import record_trajectories
from workers.text import Rendered, Renderer


@dataclass(frozen=True, slots=True)
class Example:
    """A judgement and the objective that learns from it. places: of its trajectories, in `Examples.rendered`."""

    objective: str
    record: FeedbackRecord
    places: tuple[int, ...]

    @property
    def task(self) -> str:
        return record_trajectories(self.record)[0].task.id

    @property
    def annotator(self) -> str:
        return "" if isinstance(self.record, OutcomeRecord) else self.record.annotator

    @property
    def weight(self) -> float:
        return 1.0 if isinstance(self.record, OutcomeRecord) else self.record.weight

    @property
    def criterion(self) -> str | None:
        return getattr(self.record, "criterion", None)

    @property
    def name(self) -> str:
        """How messages call it."""
        item = None if isinstance(self.record, OutcomeRecord) else self.record.item
        sides = " / ".join(one.id or one.content_hash[:12] for one in record_trajectories(self.record))
        return f"{item or self.task}: {sides}"


@dataclass(slots=True)
class Examples:
    """What can be learnt from some records.

    rendered: distinct trajectories. criteria: by name, {text, scale}. skipped: records left out, by reason.
    """

    items: list[Example] = field(default_factory=list)
    rendered: list[Any] = field(default_factory=list)
    criteria: dict[str, dict[str, Any]] = field(default_factory=dict)
    skipped: dict[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.items)

    def of(self, objective: str) -> list[Example]:
        return [one for one in self.items if one.objective == objective]


@dataclass(frozen=True, slots=True)
class Batch:
    """Examples of one objective, with what the model says of their trajectories.

    row: by place, the trajectory's row in `outputs`. rendered: by place.
    """

    examples: Sequence[Example]
    outputs: Outputs
    row: dict[int, int]
    rendered: Sequence[Rendered]

    def rows(self, side: int = 0) -> list[int]:
        return [self.row[one.places[side]] for one in self.examples]

    def rewards(self, side: int = 0) -> Tensor:
        """[examples, heads], raw, of their `side`th trajectory."""
        return self.outputs.rewards[self.rows(side)]

    def scores(self, side: int = 0) -> Tensor:
        """The same by each example's criterion, or the reward where it has none."""
        whole = self.rewards(side).clone()
        for place, (one, row) in enumerate(zip(self.examples, self.rows(side), strict=True)):
            if one.criterion is not None and one.criterion in self.outputs.criteria:
                whole[place] = self.outputs.criteria[one.criterion][row]
        return whole


class Objective(nn.Module, ABC):
    """A loss with what it learns beside the model (thresholds, reliabilities).

    kinds: the records it learns from. joint_weight: in `joint`, unless the recipe says otherwise.
    """

    name: ClassVar[str]
    kinds: ClassVar[tuple[type, ...]]
    joint_weight: ClassVar[float] = 1.0
    reward_from: ClassVar[RewardFrom] = "scalar"

    def __init__(self, recipe: Recipe, examples: Sequence[Example]) -> None:
        super().__init__()

    @classmethod
    def refuses(cls, record: Any, recipe: Recipe) -> str | None:
        """Why a record of `kinds` teaches nothing, to follow a count ("3 of weight 0"); None if it does."""
        return None

    @classmethod
    def lacks(cls, examples: Sequence[Example]) -> str | None:
        """What is missing in the training examples, without which nothing can be learnt; None if nothing is."""
        return None

    @classmethod
    def labels(cls, examples: Sequence[Example]) -> tuple[str, ...]:
        """What steps can be called, where it needs the label head."""
        return ()

    @abstractmethod
    def forward(self, batch: Batch) -> Tensor:
        """[examples, heads]: the loss of each, not weighted."""

    def measure(self, batch: Batch) -> dict[str, Tensor]:
        """On validation, by name [examples that can be measured]; `loss` is what early stopping looks at."""
        return {"loss": self(batch).mean(-1)}


def objective_class(name: str) -> type[Objective]:
    found: type[Objective] = import_module(f"workers.objectives.{name}").OBJECTIVE
    return found


def components(recipe: Recipe) -> dict[str, float]:
    """The objectives of a recipe with their weights: itself, or for `joint` all that are not left out."""
    if recipe.objective != "joint":
        return {recipe.objective: 1.0}
    known = {name: recipe.joint_weights.get(name, objective_class(name).joint_weight) for name in SINGLE}
    return {name: weight for name, weight in known.items() if weight > 0}


def collect(records: Iterable[FeedbackRecord], renderer: Renderer, recipe: Recipe) -> Examples:
    """What the recipe's objective learns from; distinct trajectories are rendered once."""
    out, seen, places = Examples(), dict[str, int](), dict[bytes, int]()
    classes = [objective_class(name) for name in components(recipe)]

    def place(trajectory: Any) -> int:
        key = trajectory.content_hash
        if key not in seen:
            one = renderer.render(trajectory)
            if one.key not in places:
                places[one.key] = len(out.rendered)
                out.rendered.append(one)
            seen[key] = places[one.key]
        return seen[key]

    for record in records:
        for one in classes:
            if not isinstance(record, one.kinds):
                continue
            reason = "of weight 0" if getattr(record, "weight", 1.0) <= 0 else one.refuses(record, recipe)
            if reason is None:
                sides = tuple(map(place, record_trajectories(record)))
                if len(sides) > 1 and len(set(sides)) == 1:
                    reason = "of trajectories that read the same"
                else:
                    out.items.append(Example(one.name, record, sides))
                    _note_criterion(record, recipe, out.criteria)
            if reason is not None:
                out.skipped[reason] = out.skipped.get(reason, 0) + 1
    return out


def render_criteria(criteria: dict[str, dict[str, Any]], renderer: Renderer) -> dict[str, Any]:
    return {name: renderer.render(Text(described["text"])) for name, described in criteria.items()}


def _note_criterion(record: Any, recipe: Recipe, criteria: dict[str, dict[str, Any]]) -> None:
    name = getattr(record, "criterion", None)
    if name is None or recipe.criterion is not None:  # its only criterion is then what the reward means
        return
    known = criteria.setdefault(name, {"text": name, "scale": [0.0, 1.0]})
    if isinstance(record, ScoreRecord):
        known["scale"] = list(record.scale)
        if record.definition:
            known["text"] = f"{name}: {record.definition}"
