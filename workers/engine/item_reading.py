"""What an endpoint reads of an item next to its steps: speakers, the reference answer, conditions."""

from collections.abc import Mapping
from dataclasses import dataclass

from workers.engine.batcher import ServedModel
from workers.schema import ScoreInput
from workers.schema.conditions import CONDITIONS, Condition
from workers.schema.endpoints import EndpointSpec
from workers.schema.items import with_item_conditions
from workers.schema.reading_flags import reading_flags
from workers.schema.records import Source
from workers.text.speakers import ALL_SOURCES


@dataclass(frozen=True, slots=True)
class ItemReading:
    """reads_reference: whether a component compares with the reference answer. named_sources: the sources of steps
    whose speakers all models read; judges read those of all steps. conditioned: the conditions that a model reads.
    sees_pictures: whether a model reads pictures; reads_end: also after the last agent step."""

    reads_reference: bool
    named_sources: frozenset[Source]
    conditioned: tuple[Condition, ...]
    sees_pictures: bool = False
    reads_end: bool = False

    @classmethod
    def of(cls, spec: EndpointSpec, models: Mapping[str, ServedModel], *, has_judges: bool) -> "ItemReading":
        scorers = [served.model for served in models.values()]
        read = [frozenset(scorer.named_sources) for scorer in scorers]
        read += [ALL_SOURCES] if has_judges else []
        return cls(
            any(component.reads_reference for component in spec.components),
            frozenset.intersection(*read) if read else frozenset(),
            tuple(name for name in CONDITIONS if any(name in scorer.conditioned for scorer in scorers)),
            any(scorer.sees_pictures for scorer in scorers),
            any(getattr(scorer, "reads_end", False) for scorer in scorers),
        )

    def prepare(self, item: ScoreInput) -> ScoreInput:
        """The item with the conditions that models read."""
        return with_item_conditions(item, self.conditioned)

    def flags(self, item: ScoreInput) -> tuple[str, ...]:
        """Of an item that `prepare` gave."""
        return reading_flags(
            item,
            reads_reference=self.reads_reference,
            named_sources=self.named_sources,
            conditioned=self.conditioned,
            sees_pictures=self.sees_pictures,
            reads_end=self.reads_end,
        )
