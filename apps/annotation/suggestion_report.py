"""Answers with an accepted suggestion compared with free ones."""

from collections import defaultdict
from collections.abc import Hashable
from dataclasses import dataclass, field
from statistics import median

from apps.annotation.feedback.records import work_annotations
from apps.annotation.feedback_types import FEEDBACK_TYPES
from apps.annotation.models import Annotation, Campaign
from apps.annotation.quality import Proportion

Answers = dict[Hashable, Hashable]
# Not part of what is compared: words of the annotator, and by how much one is better.
NOT_COMPARED = {"note", "corrections", "strength"}


@dataclass
class SuggestionFigures:
    """Of the annotations with one mark.

    same: questions answered as suggested. agreement: with answers of others who saw no suggestion.
    """

    mark: str
    annotations: int = 0
    same: Proportion = field(default_factory=Proportion)
    agreement: Proportion = field(default_factory=Proportion)
    seconds: list[float] = field(default_factory=list)

    @property
    def label(self) -> str:
        return Annotation.Suggestion(self.mark).label

    @property
    def median_seconds(self) -> float | None:
        return median(self.seconds) if self.seconds else None


def compare_suggestions(campaign: Campaign) -> list[SuggestionFigures]:
    """Figures by mark, accepted first; empty where nothing was ever suggested."""
    rows = work_annotations(campaign.project, campaign.name).exclude(
        assignment__annotator=campaign.suggester_id
    )
    if not rows.exclude(suggestion="").exists():
        return []
    suggested = _suggested_answers(campaign)
    found = {mark: SuggestionFigures(mark) for mark in reversed(Annotation.Suggestion.values)}
    by_item: dict[int, list[tuple[str, Answers]]] = defaultdict(list)
    kinds = [FEEDBACK_TYPES[name] for name in campaign.feedback_types]
    for annotation in rows.prefetch_related(*(kind.related_name for kind in kinds)).iterator(chunk_size=500):
        answers, figures = _answers(annotation, campaign), found[annotation.suggestion]
        figures.annotations += 1
        if annotation.active_seconds is not None:
            figures.seconds.append(annotation.active_seconds)
        item = annotation.assignment.item_id
        figures.same += _in_common(answers, suggested.get(item, {}))
        by_item[item].append((annotation.suggestion, answers))
    for given in by_item.values():
        for place, (mark, answers) in enumerate(given):
            for other_place, (other_mark, others) in enumerate(given):
                if place != other_place and not other_mark:
                    found[mark].agreement += _in_common(answers, others)
    return [figures for figures in found.values() if figures.annotations]


def _suggested_answers(campaign: Campaign) -> dict[int, Answers]:
    """The suggester's answers, by item."""
    rows = Annotation.objects.filter(
        assignment__item__campaign=campaign, assignment__annotator=campaign.suggester_id, is_surplus=False
    )
    kinds = [FEEDBACK_TYPES[name] for name in campaign.feedback_types]
    rows = rows.select_related("assignment").order_by("revision")
    rows = rows.prefetch_related(*(kind.related_name for kind in kinds))
    return {row.assignment.item_id: _answers(row, campaign) for row in rows.iterator(chunk_size=500)}


def _answers(annotation: Annotation, campaign: Campaign) -> Answers:
    """By question; of types with one answer to each question."""
    answers: Answers = {}
    for name in campaign.feedback_types:
        for row in getattr(annotation, FEEDBACK_TYPES[name].related_name).all():
            if row.key_fields is not None or name == "rating":
                compared = [field for field in row.answer_fields() if field not in NOT_COMPARED]
                answers[row.question_key] = tuple(str(getattr(row, field)) for field in compared)
    return answers


def _in_common(answers: Answers, others: Answers) -> Proportion:
    shared = answers.keys() & others.keys()
    return Proportion(sum(answers[key] == others[key] for key in shared), len(shared))
