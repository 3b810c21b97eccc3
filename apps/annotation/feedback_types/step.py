"""Labels of agent steps: good, neutral or bad with a correction; or only the first error. Records: `steps`.

The form's fields are `step-SIDE-N` (a label; N is the agent_step, from 0) and `step-SIDE-N-correction`, or `first-SIDE`
(an agent_step, or `none`: no error). SIDE is `both` for the shared steps of two trajectories, which are shown once and
labelled for both. A step without a label is unknown, not neutral. A correction that calls a tool has its name in
`step-SIDE-N-tool` and its arguments, as JSON, in `step-SIDE-N-arguments`. Corrections are of labelled steps, or of the
first error. Where the campaign's rubric has a criterion with
tags on agent steps, `step-SIDE-N-tag-K` is the tag at place K, from 0; any value chooses it.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django import forms
from django.db.models import QuerySet

from apps.annotation.corrections import (
    MOST_CHARACTERS,
    check_correction,
    loaded_corrections,
    read_arguments,
    read_corrections,
    stored_corrections,
)
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
from apps.annotation.feedback_types.category import LONGEST_NAME, CategorySetCodes, check_categories
from apps.annotation.models import LABELS, StepLabelSet
from apps.annotation.presentation import LETTERS, SIDES, FormFields, PresentedItem
from apps.core.errors import DomainError
from apps.core.number_parsing import whole_number
from apps.rubrics.models import Criterion
from apps.trajectories.models import Trajectory
from workers import schema
from workers.errors import InvalidRecord
from workers.schema import StepCorrection, ToolCall, clean
from workers.schema.decode import convert
from workers.schema.patterns import TextPattern
from workers.schema.step_corrections import Correction, correction_text

BOTH, NONE = "both", "none"
FIRST_ERROR = "first_error"
_SIDE = f"({'|'.join([*SIDES[:2], BOTH])})"
_MARK = TextPattern(rf"step-{_SIDE}-(\d{{1,6}})(-correction|-tool|-arguments|-tag-(\d{{1,2}}))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class StepValue:
    labels: dict[int, str]
    corrections: dict[int, Correction]
    tags: dict[int, tuple[str, ...]] = field(default_factory=dict)
    taxonomy: str | None = None
    taxonomy_tags: tuple[str, ...] = ()
    has_first_error: bool = False
    first_error: int | None = None


def asks_first_error(shown: PresentedItem) -> bool:
    return shown.option("step", "mark", "labels") == FIRST_ERROR


def _places(side: str, shown: PresentedItem) -> Sequence[int]:
    return range(len(shown.trajectories)) if side == BOTH else [SIDES.index(side)]


def _parse_labels(fields: FormFields, shown: PresentedItem, rows: list[StepLabelSet]) -> None:
    for name, value in fields.items():
        if (match := _MARK.fullmatch(name)) is None or not value:
            continue
        for place in _places(match[1], shown):
            step = _step(match[2], place, shown, name)
            if match[3]:
                continue
            if value in LABELS:
                rows[place].labels[str(step)] = value
            else:
                raise DomainError(
                    f"Unknown label {value!r}; allowed are good, neutral and bad.", pointer=f"/{name}"
                )


def _parse_corrections(fields: FormFields, shown: PresentedItem, rows: list[StepLabelSet]) -> None:
    """What the agent should have done, at labelled steps or at the first error."""
    names = [match[0].removesuffix(match[3]) for match in map(_MARK.fullmatch, fields) if match and match[3]]
    for name in dict.fromkeys(names):
        match, correction = _MARK.fullmatch(name), _correction(fields, name)
        if match is None or correction == "":
            continue
        for place in _places(match[1], shown):
            step = _step(match[2], place, shown, name)
            _check_marked(rows[place], step, place, shown, name)
            _check_call(correction, place, shown, name)
            rows[place].corrections |= stored_corrections({step: correction})


def _correction(fields: FormFields, name: str) -> Correction:
    """Of the step with this field name; "" for none. Raises DomainError."""
    text = clean(fields.get(f"{name}-correction", "").strip())[0]
    if len(text) > MOST_CHARACTERS:
        raise DomainError(
            f"A correction can have at most {MOST_CHARACTERS} characters.", pointer=f"/{name}-correction"
        )
    tool, arguments = fields.get(f"{name}-tool", ""), fields.get(f"{name}-arguments", "")
    if not tool:
        if arguments.strip():
            raise DomainError(
                "The correction has arguments but no tool; choose the tool, or delete the arguments.",
                pointer=f"/{name}-tool",
            )
        return text
    try:
        read = read_arguments(clean(arguments)[0], pointer=f"/{name}-arguments")
    except InvalidRecord as error:
        raise DomainError(
            f"Arguments of {tool[:100]}: {error.message}", pointer=f"/{name}-arguments"
        ) from None
    return StepCorrection(text=text, tool_calls=(ToolCall(name=tool, arguments=read),))


def _check_marked(row: StepLabelSet, step: int, place: int, shown: PresentedItem, name: str) -> None:
    """Raises DomainError for a correction of a step that is not marked."""
    corrected = f"Agent step {step}"
    corrected += f" of {LETTERS[place]}" if len(shown.trajectories) > 1 else ""
    if asks_first_error(shown):
        if row.has_first_error and row.first_error == step:
            return
        marked = "you marked no error" if row.has_first_error else "the first error is not marked"
        if row.first_error is not None:
            marked = f"you marked agent step {row.first_error} as the first error"
        raise DomainError(
            f"{corrected} has a correction, and {marked}; mark agent step {step}, or delete its correction.",
            pointer=f"/{name}-correction",
        )
    if str(step) not in row.labels:
        raise DomainError(
            f"{corrected} has a correction but no label; choose a label, or delete the correction.",
            pointer=f"/{name}-correction",
        )


def _check_call(correction: Correction, place: int, shown: PresentedItem, name: str) -> None:
    called = f"trajectory {LETTERS[place]}" if len(shown.trajectories) > 1 else "the trajectory"
    try:
        check_correction(correction, shown.on_side(place), called=called)
    except InvalidRecord as error:
        field = "arguments" if (error.pointer or "").endswith("arguments") else "tool"
        message = error.message[:1].upper() + error.message[1:]
        raise DomainError(message, pointer=f"/{name}-{field}") from None


def _parse_tags(fields: FormFields, shown: PresentedItem, rows: list[StepLabelSet]) -> None:
    """Tags of agent steps, in the order of the taxonomy."""
    if shown.taxonomy is None:
        return
    names = shown.taxonomy.category_names
    for row in rows:
        row.taxonomy = shown.taxonomy
    for name, value in fields.items():
        if not value or (match := _MARK.fullmatch(name)) is None or not match[4]:
            continue
        if (number := int(match[4])) >= len(names):
            raise DomainError(f"The taxonomy has tags 0 to {len(names) - 1}.", pointer=f"/{name}")
        for place in _places(match[1], shown):
            step = str(_step(match[2], place, shown, name))
            chosen = {*rows[place].tags.get(step, ()), names[number]}
            rows[place].tags[step] = [tag for tag in names if tag in chosen]


def _parse_first_error(fields: FormFields, shown: PresentedItem, rows: list[StepLabelSet]) -> None:
    """The earliest marked step; an error in the shared steps is the first error of both."""
    for side in (*shown.sides, BOTH):
        said = fields.get(f"first-{side}", "")
        for place in _places(side, shown) if said else ():
            row = rows[place]
            row.has_first_error = True
            if said != NONE:
                step = _step(said, place, shown, f"first-{side}")
                row.first_error = step if row.first_error is None else min(step, row.first_error)


def _step(text: str, place: int, shown: PresentedItem, name: str) -> int:
    count = shown.on_side(place).agent_step_count if place < len(shown.trajectories) else 0
    number = whole_number(text)
    if number is None or number >= count:
        raise DomainError(
            f"Agent step {text[:100]} is not in this trajectory; agent steps are 0 to {count - 1}.",
            pointer=f"/{name}",
        )
    return number


class StepLabelType(FeedbackType[StepLabelSet, StepValue, schema.StepLabelRecord]):
    name = "step"
    label = "Step labels"
    question = "Which steps are good and which are bad?"
    description = (
        "A label (good, neutral or bad) and a correction for each agent step, or only the first error."
    )
    model = StepLabelSet
    min_trajectories = 1
    max_trajectories = 2
    field_pattern = TextPattern(rf"{_MARK.pattern}|first-{_SIDE}")
    template = "annotation/feedback_types/_step.html"
    card_template = "annotation/feedback_types/_step_card.html"
    options = {
        "mark": forms.ChoiceField(
            label="Mark", choices=[("labels", "each step"), (FIRST_ERROR, "only the first error")]
        )
    }
    import_format = "steps"
    record_keys = ("trajectory", "labels", "first_error", "corrections", "tags", "taxonomy", "taxonomy_tags")
    distinguishing_keys = ("labels", "first_error", "tags")
    select_related_fields = ("taxonomy",)
    answer_types = (Criterion.AnswerType.STEP_TAGS,)

    def parse(self, fields: FormFields, shown: PresentedItem) -> list[StepLabelSet]:
        rows = [StepLabelSet(trajectory=shown.on_side(place)) for place in range(len(shown.trajectories))]
        if asks_first_error(shown):
            _parse_first_error(fields, shown, rows)
        else:
            _parse_labels(fields, shown, rows)
        _parse_corrections(fields, shown, rows)
        _parse_tags(fields, shown, rows)
        return [row for row in rows if row.labels or row.tags or row.has_first_error]

    def form_values(self, rows: Sequence[Any], shown: PresentedItem) -> dict[str, str]:
        out: dict[str, str] = {}
        for row in records_of_type(rows, StepLabelSet):
            side = SIDES[shown.side_of(row.trajectory_id)]
            if row.has_first_error:
                out[f"first-{side}"] = NONE if row.first_error is None else str(row.first_error)
            out |= {f"step-{side}-{step}": label for step, label in row.labels.items()}
            for step, correction in loaded_corrections(row.corrections).items():
                out |= _correction_fields(f"step-{side}-{step}", correction)
            out |= _tag_fields(row, side)
        return out

    def validate(self, rows: Sequence[Any], shown: PresentedItem, alone: bool) -> None:
        said = {row.trajectory_id for row in records_of_type(rows, StepLabelSet)}
        if asks_first_error(shown):
            for place, side in enumerate(shown.sides):
                if shown.on_side(place).pk not in said:
                    which = f" in {LETTERS[place]}" if len(shown.trajectories) > 1 else ""
                    raise DomainError(
                        f"Mark the first error{which}, or choose “No error”.", pointer=f"/first-{side}"
                    )
        elif alone and not said:
            raise DomainError("Mark at least one step.", pointer="/step-left-0")

    def questions(self, fields: FormFields, shown: PresentedItem) -> list[Question]:
        """Only “No error”: all other answers are on the steps."""
        if not asks_first_error(shown):
            return []
        return [
            Question(
                name=f"first-{side}",
                title=f"First error in {LETTERS[place]}" if len(shown.trajectories) > 1 else "First error",
                place=place,
                heading="First error" if len(shown.trajectories) > 1 else "",
                options=[Option(NONE, "No error", "no error", "0")],
                value=fields.get(f"first-{side}", ""),
            )
            for place, side in enumerate(shown.sides)
        ]

    def summary(self, rows: Sequence[Any], shown: PresentedItem) -> str:
        many = len(shown.trajectories) > 1
        return "; ".join(
            (f"{LETTERS[shown.side_of(row.trajectory_id)]}: " if many else "") + str(row)
            for row in records_of_type(rows, StepLabelSet)
        )

    def read_record(self, record: dict[str, Any], place: Place) -> ReadRecord:
        labels = convert(record.get("labels", {}), dict[int, str], pointer="/labels")
        wrong = next((step for step, label in labels.items() if label not in LABELS), None)
        if wrong is not None:
            message = f"unknown label {labels[wrong]!r}; allowed are {', '.join(LABELS)}."
            raise InvalidRecord(message, pointer=f"/labels/{wrong}")
        tags = convert(record.get("tags", {}), dict[int, tuple[str, ...]], pointer="/tags")
        value = StepValue(
            labels=labels,
            tags={step: chosen for step, chosen in tags.items() if chosen},
            taxonomy=convert(record.get("taxonomy"), str | None, pointer="/taxonomy"),  # type: ignore[arg-type]
            taxonomy_tags=convert(record.get("taxonomy_tags", ()), tuple[str, ...], pointer="/taxonomy_tags"),
            corrections=read_corrections(record.get("corrections", {}), pointer="/corrections"),
            has_first_error="first_error" in record,
            first_error=convert(record.get("first_error"), int | None, pointer="/first_error"),  # type: ignore[arg-type]
        )
        if not value.labels and not value.tags and not value.has_first_error:
            raise InvalidRecord(
                "give labels, or first_error (an agent_step, or null for no error).", pointer="/labels"
            )
        _check_tags(value)
        return (place(record.get("trajectory"), "/trajectory"),), value

    def check_record(self, value: StepValue, rows: Sequence[Trajectory]) -> None:
        """Check that all steps are agent steps. Raises InvalidRecord."""
        count = rows[0].agent_step_count
        named: dict[str, Iterable[int | None]] = {
            "labels": value.labels,
            "corrections": value.corrections,
            "tags": value.tags,
            "first_error": (value.first_error,),
        }
        for key, steps in named.items():
            wrong = next((step for step in steps if step is not None and not 0 <= step < count), None)
            if wrong is not None:
                raise InvalidRecord(
                    f"agent step {wrong} is not in the trajectory; agent steps are 0 to {count - 1}.",
                    pointer=f"/{key}",
                )

        for step, correction in value.corrections.items():
            try:
                check_correction(correction, rows[0])
            except InvalidRecord as error:
                raise error.at(f"/corrections/{step}") from None

    def make_row(self, value: StepValue, stored: ImportTarget) -> StepLabelSet:
        taxonomy = None
        if value.taxonomy is not None:
            step_tags = Criterion.AnswerType.STEP_TAGS.value
            taxonomy = stored.categorical_criterion(value.taxonomy, None, step_tags, value.taxonomy_tags)
        names = taxonomy.category_names if taxonomy else []
        return StepLabelSet(
            taxonomy=taxonomy,
            tags={
                str(step): [tag for tag in names if tag in chosen]
                for step, chosen in sorted(value.tags.items())
            },
            trajectory=stored.trajectories[0],
            labels={str(step): label for step, label in sorted(value.labels.items())},
            corrections=stored_corrections(value.corrections),
            has_first_error=value.has_first_error,
            first_error=value.first_error,
        )

    def to_record(
        self,
        row: StepLabelSet,
        places: Sequence[schema.Trajectory],
        of: Mapping[int, schema.Trajectory],
        common: dict[str, Any],
    ) -> schema.StepLabelRecord:
        return schema.StepLabelRecord(
            trajectory=of[row.trajectory_id],
            labels={int(step): label for step, label in row.labels.items()},
            corrections=loaded_corrections(row.corrections),
            tags={int(step): tuple(chosen) for step, chosen in row.tags.items()},
            taxonomy=row.taxonomy.name if row.taxonomy else None,
            taxonomy_tags=tuple(row.taxonomy.category_names) if row.taxonomy else (),
            has_first_error=row.has_first_error,
            first_error=row.first_error,
            **common,
        )

    def to_json(self, record: schema.StepLabelRecord, item: TrajectoryWriter) -> dict[str, Any]:
        out: dict[str, Any] = {"trajectory": item(record.trajectory)}
        if record.labels:
            out["labels"] = {str(step): label for step, label in record.labels.items()}
        if record.corrections:
            out["corrections"] = stored_corrections(record.corrections)
        if record.taxonomy is not None:
            out["tags"] = {str(step): list(chosen) for step, chosen in record.tags.items()}
            out |= {"taxonomy": record.taxonomy, "taxonomy_tags": list(record.taxonomy_tags)}
        return out | ({"first_error": record.first_error} if record.has_first_error else {})

    def evaluations(self, record: schema.StepLabelRecord) -> Iterator[TrajectoryEvaluation]:
        """For each labelled step: 1 good, 0 neutral, -1 bad. For the first error: the agent step, or none."""
        corrections = {step: correction_text(each) for step, each in record.corrections.items()}
        values = {"good": 1.0, "neutral": 0.0, "bad": -1.0}
        for step, label in sorted(record.labels.items()):
            yield TrajectoryEvaluation(
                record.trajectory, "step", values[label], label, corrections.get(step), {"agent_step": step}
            )
        for step, chosen in sorted(record.tags.items()):
            for tag in chosen:
                yield TrajectoryEvaluation(
                    record.trajectory, record.taxonomy or "tag", None, tag, None, {"agent_step": step}
                )
        if record.has_first_error:
            first = record.first_error
            said = "none" if first is None else f"step {first}"
            correction = None if first is None else corrections.get(first)
            yield TrajectoryEvaluation(
                record.trajectory, "first error", first, said, correction, {"agent_step": first}
            )

    def agreement_values(self, rows: QuerySet[Any]) -> Iterator[AgreementValue]:
        """The label of each step, ordinal: bad, neutral, good. The step of the first error, nominal.

        Tags are sets: of each step that was labelled or tagged, and of all steps of a trajectory together.
        """
        said = rows.values_list(
            "annotation__assignment__annotator__name",
            "annotation__assignment__item_id",
            "trajectory_id",
            "labels",
            "has_first_error",
            "first_error",
            "tags",
            "taxonomy__name",
        )
        codes = CategorySetCodes()
        for (
            annotator, item, trajectory, labels, has_first_error, first_error, tags, taxonomy,
        ) in said.iterator():  # fmt: skip
            if taxonomy is not None:
                together = sorted({tag for chosen in tags.values() for tag in chosen})
                yield codes.agreement_value(
                    annotator, item, trajectory, together, "set", f"{taxonomy}, whole trajectory"
                )
            for step in sorted({*labels, *tags}) if taxonomy is not None else ():
                unit = (trajectory, step)
                yield codes.agreement_value(
                    annotator, item, unit, tags.get(step, []), "set", f"{taxonomy}, steps"
                )
            for step, label in labels.items():
                yield AgreementValue(annotator, item, (trajectory, step), LABELS.index(label), "ordinal")
            if has_first_error:
                yield AgreementValue(
                    annotator,
                    item,
                    trajectory,
                    -1 if first_error is None else first_error,
                    "nominal",
                    "first error",
                )


def _correction_fields(name: str, correction: Correction) -> dict[str, str]:
    """The fields that `_correction` reads as this correction."""
    if isinstance(correction, str):
        return {f"{name}-correction": correction}
    call = correction.tool_calls[0]
    arguments = json.dumps(call.arguments, ensure_ascii=False)
    text = {f"{name}-correction": correction.text} if correction.text else {}
    return text | {f"{name}-tool": call.name, f"{name}-arguments": arguments}


def tag_options(fields: FormFields, name: str, shown: PresentedItem) -> list[CheckboxOption]:
    """Tags that a step can have. name: of the step's field."""
    categories = shown.taxonomy.categories if shown.taxonomy else []
    return [
        CheckboxOption(
            f"{name}-tag-{place}",
            each["name"],
            about=each["definition"],
            is_checked=bool(fields.get(f"{name}-tag-{place}")),
        )
        for place, each in enumerate(categories)
    ]


def _tag_fields(row: StepLabelSet, side: str) -> dict[str, str]:
    names = row.taxonomy.category_names if row.taxonomy else []
    return {
        f"step-{side}-{step}-tag-{names.index(tag)}": "1"
        for step, chosen in row.tags.items()
        for tag in chosen
        if tag in names
    }


def _check_tags(value: StepValue) -> None:
    if value.taxonomy is None:
        if value.tags:
            raise InvalidRecord(
                "tags need the name of their taxonomy, and taxonomy_tags with all its tags.",
                pointer="/taxonomy",
            )
        return
    if not 0 < len(value.taxonomy.strip()) <= LONGEST_NAME:
        raise InvalidRecord(
            f"the name of a taxonomy must have between 1 and {LONGEST_NAME} characters.", pointer="/taxonomy"
        )
    check_categories((), value.taxonomy_tags, "/tags", "/taxonomy_tags")
    for step, chosen in value.tags.items():
        check_categories(chosen, value.taxonomy_tags, f"/tags/{step}", "/taxonomy_tags")


STEP = StepLabelType()
