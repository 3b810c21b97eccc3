"""One or several categories of each trajectory, by the criteria of the rubric that have some. Records: `categories`.

The form's fields are `category-SIDE-ID` (the place of a category, from 0; `none`: cannot tell; `empty`: none of the
categories) and, where several can apply, `category-SIDE-ID-N` (N: the place of a category; any value chooses it), and
`category-SIDE-ID-note`. ID is the criterion's. `none` creates no row.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from apps.annotation.feedback_types.base import (
    AgreementValue,
    CheckboxOption,
    FeedbackType,
    ImportTarget,
    Option,
    Place,
    Question,
    ReadRecord,
    TrajectoryEvaluation,
    TrajectoryWriter,
    records_of_type,
)
from apps.annotation.models import CategoryChoice
from apps.annotation.presentation import LETTERS, SIDES, FormFields, PresentedItem, parse_choice
from apps.core.errors import DomainError
from apps.rubrics.models import MOST_CATEGORIES, Criterion
from workers import schema
from workers.errors import InvalidRecord
from workers.schema import clean
from workers.schema.decode import convert
from workers.schema.patterns import TextPattern

NONE, EMPTY = "none", "empty"
MAX_NOTE_LENGTH = 5000
LONGEST_NAME = 200
LONGEST_CATEGORY = 100
AnswerType = Criterion.AnswerType


@dataclass(frozen=True, slots=True, kw_only=True)
class CategoryValue:
    criterion: str
    categories: tuple[str, ...]
    options: tuple[str, ...]
    several: bool = False
    definition: str | None = None
    note: str | None = None


def check_categories(chosen: Sequence[str], options: Sequence[str], pointer: str, all_pointer: str) -> None:
    """Check names of categories in an imported record. Raises InvalidRecord."""
    if not 2 <= len(set(options)) == len(options) <= MOST_CATEGORIES:
        raise InvalidRecord(f"give all 2 to {MOST_CATEGORIES} categories, each once.", pointer=all_pointer)
    if any(not 0 < len(name.strip()) <= LONGEST_CATEGORY for name in options):
        raise InvalidRecord(f"a category must have 1 to {LONGEST_CATEGORY} characters.", pointer=all_pointer)
    wrong = next((name for name in chosen if name not in options), None)
    if wrong is not None:
        raise InvalidRecord(f"{wrong!r} is not one of {', '.join(options)}.", pointer=pointer)
    if len(set(chosen)) < len(chosen):
        raise InvalidRecord("a category is named twice.", pointer=pointer)


def _asked(shown: PresentedItem) -> Iterator[tuple[str, Criterion, int]]:
    """Field name, criterion and side of each question, by criterion."""
    for criterion in shown.category_criteria:
        for place, side in enumerate(shown.sides):
            yield f"category-{side}-{criterion.pk}", criterion, place


def _chosen_places(fields: FormFields, name: str, criterion: Criterion) -> list[int]:
    """The checked categories of a criterion of which several can apply."""
    if criterion.answer_type != AnswerType.CATEGORIES:
        return []
    return [place for place in range(len(criterion.categories)) if fields.get(f"{name}-{place}")]


class CategoryType(FeedbackType[CategoryChoice, CategoryValue, schema.CategoryRecord]):
    name = "category"
    label = "Categories"
    question = "Which categories apply?"
    description = (
        "One or several named categories of each trajectory, by criteria of a rubric that have categories."
    )
    model = CategoryChoice
    min_trajectories = 1
    max_trajectories = len(SIDES)
    field_pattern = TextPattern(rf"category-({'|'.join(SIDES)})-\d{{1,12}}(-\d{{1,2}}|-note)?")
    answer_types = (AnswerType.CATEGORY, AnswerType.CATEGORIES)
    import_format = "categories"
    record_keys = ("trajectory", "criterion", "definition", "categories", "options", "several", "note")
    distinguishing_keys = ("categories",)
    select_related_fields = ("criterion",)

    def parse(self, fields: FormFields, shown: PresentedItem) -> list[CategoryChoice]:
        rows = []
        for name, criterion, place in _asked(shown):
            names = criterion.category_names
            several = criterion.answer_type == AnswerType.CATEGORIES
            allowed = [EMPTY, NONE] if several else [*map(str, range(len(names))), NONE]
            answer = parse_choice(fields, name, allowed, "category")
            places = _chosen_places(fields, name, criterion)
            which = f" for {LETTERS[place]}" if len(shown.trajectories) > 1 else ""
            if places and answer:
                raise DomainError(
                    f"“{criterion.name}”{which} has categories and also an answer that excludes them; choose one.",
                    pointer=f"/{name}",
                )
            if not places and not answer:
                raise DomainError(
                    f"“{criterion.name}”{which} has no answer; choose ? if you cannot tell.",
                    pointer=f"/{name}",
                )
            note = clean(fields.get(f"{name}-note", "").strip())[0]
            if len(note) > MAX_NOTE_LENGTH:
                raise DomainError(
                    f"A note can have at most {MAX_NOTE_LENGTH} characters.", pointer=f"/{name}-note"
                )
            if answer != NONE:
                places = [int(answer)] if answer and answer != EMPTY else places
                chosen = [names[index] for index in places]
                rows.append(
                    CategoryChoice(
                        trajectory=shown.on_side(place), criterion=criterion, categories=chosen, note=note
                    )
                )
        return rows

    def form_values(self, rows: Sequence[Any], shown: PresentedItem) -> dict[str, str]:
        given = {(row.trajectory_id, row.criterion_id): row for row in records_of_type(rows, CategoryChoice)}
        out: dict[str, str] = {}
        for name, criterion, side in _asked(shown):
            row = given.get((shown.on_side(side).pk, criterion.pk))
            places = [criterion.category_names.index(each) for each in row.categories] if row else []
            if row is None:
                out[name] = NONE
            elif criterion.answer_type == AnswerType.CATEGORIES:
                out |= {f"{name}-{place}": "1" for place in places} or {name: EMPTY}
            else:
                out[name] = str(places[0])
            if row and row.note:
                out[f"{name}-note"] = row.note
        return out

    def validate(self, rows: Sequence[Any], shown: PresentedItem, alone: bool) -> None:
        if alone and not records_of_type(rows, CategoryChoice):
            raise DomainError("Answer at least one question, or skip the item.")

    def questions(self, fields: FormFields, shown: PresentedItem) -> list[Question]:
        many = len(shown.trajectories) > 1
        return [
            Question(
                name=name,
                title=f"{criterion.name}, {LETTERS[place]}" if many else criterion.name,
                options=_options(criterion),
                checkboxes=_checkboxes(fields, name, criterion),
                value=fields.get(name, ""),
                criterion=criterion,
                place=place,
                heading=criterion.name if many else "",
                note=f"{name}-note",
                note_value=fields.get(f"{name}-note", ""),
            )
            for name, criterion, place in _asked(shown)
        ]

    def summary(self, rows: Sequence[Any], shown: PresentedItem) -> str:
        many = len(shown.trajectories) > 1
        return "; ".join(
            f"{row.criterion.name}{f' {LETTERS[shown.side_of(row.trajectory_id)]}' if many else ''}: {row}"
            for row in records_of_type(rows, CategoryChoice)
        )

    def read_record(self, record: dict[str, Any], place: Place) -> ReadRecord:
        keys = ("criterion", "definition", "categories", "options", "several", "note")
        value = convert({key: record[key] for key in keys if key in record}, CategoryValue)
        if not 0 < len(value.criterion.strip()) <= LONGEST_NAME:
            raise InvalidRecord(
                f"the name of a criterion must have between 1 and {LONGEST_NAME} characters.",
                pointer="/criterion",
            )
        check_categories(value.categories, value.options, "/categories", "/options")
        if len(value.categories) != 1 and not value.several:
            raise InvalidRecord(
                "give one category, or several: true where none or more can apply.", pointer="/categories"
            )
        return (place(record.get("trajectory"), "/trajectory"),), value

    def make_row(self, value: CategoryValue, stored: ImportTarget) -> CategoryChoice:
        answer_type = AnswerType.CATEGORIES if value.several else AnswerType.CATEGORY
        criterion = stored.categorical_criterion(
            value.criterion, value.definition, answer_type.value, value.options
        )
        return CategoryChoice(
            trajectory=stored.trajectories[0],
            criterion=criterion,
            categories=[name for name in criterion.category_names if name in value.categories],
            note=value.note or "",
        )

    def to_record(
        self,
        row: CategoryChoice,
        places: Sequence[schema.Trajectory],
        of: Mapping[int, schema.Trajectory],
        common: dict[str, Any],
    ) -> schema.CategoryRecord:
        return schema.CategoryRecord(
            trajectory=of[row.trajectory_id],
            criterion=row.criterion.name,
            definition=row.criterion.definition or None,
            categories=tuple(row.categories),
            options=tuple(row.criterion.category_names),
            several=row.criterion.answer_type == AnswerType.CATEGORIES,
            note=row.note or None,
            **common,
        )

    def to_json(self, record: schema.CategoryRecord, item: TrajectoryWriter) -> dict[str, Any]:
        return {
            "trajectory": item(record.trajectory), "criterion": record.criterion, "definition": record.definition,
            "categories": list(record.categories), "options": list(record.options), "several": record.several,
            "note": record.note,
        }  # fmt: skip

    def evaluations(self, record: schema.CategoryRecord) -> Iterator[TrajectoryEvaluation]:
        """One with the names of the categories; where several can apply, also 1 or 0 for each category."""
        label = ", ".join(record.categories) or "none"
        yield TrajectoryEvaluation(record.trajectory, record.criterion, None, label, record.note)
        for name in record.options if record.several else ():
            chosen = name in record.categories
            yield TrajectoryEvaluation(
                record.trajectory, f"{record.criterion}: {name}", float(chosen), "yes" if chosen else "no"
            )

    def agreement_values(self, rows: QuerySet[Any]) -> Iterator[AgreementValue]:
        """The set of categories, by criterion: nominal, or by the overlap of sets where several can apply."""
        found = rows.values_list(
            "annotation__assignment__annotator__name",
            "annotation__assignment__item_id",
            "trajectory_id",
            "criterion__name",
            "criterion__answer_type",
            "categories",
        )
        codes = CategorySetCodes()
        for annotator, item, trajectory, criterion, answer_type, categories in found.iterator():
            level = "set" if answer_type == AnswerType.CATEGORIES else "nominal"
            yield codes.agreement_value(annotator, item, trajectory, categories, level, criterion)

    def needs_criteria(self, options: Mapping[str, Any]) -> bool:
        return True


class CategorySetCodes:
    """Numbers of sets of categories, which tables of values need."""

    def __init__(self) -> None:
        self._codes: dict[frozenset[str], int] = {}

    def agreement_value(
        self, annotator: str, item: int, unit: Any, categories: Sequence[str], level: Any, question: str
    ) -> AgreementValue:
        chosen = frozenset(categories)
        code = self._codes.setdefault(chosen, len(self._codes))
        return AgreementValue(annotator, item, unit, float(code), level, question, chosen)


def _key(place: int) -> str:
    return str(place + 1) if place < 9 else ""


def _options(criterion: Criterion) -> list[Option]:
    cannot_tell = Option(NONE, "?", "cannot tell", "x", "none")
    if criterion.answer_type == AnswerType.CATEGORIES:
        return [Option(EMPTY, "none of these", "none of these", "0", "none"), cannot_tell]
    return [
        *(
            Option(str(place), each["name"], each["name"], _key(place), point=each["definition"])
            for place, each in enumerate(criterion.categories)
        ),
        cannot_tell,
    ]


def _checkboxes(fields: FormFields, name: str, criterion: Criterion) -> list[CheckboxOption]:
    if criterion.answer_type != AnswerType.CATEGORIES:
        return []
    return [
        CheckboxOption(
            f"{name}-{place}",
            each["name"],
            _key(place),
            each["definition"],
            bool(fields.get(f"{name}-{place}")),
        )
        for place, each in enumerate(criterion.categories)
    ]


CATEGORY = CategoryType()
