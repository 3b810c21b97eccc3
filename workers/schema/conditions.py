"""What a model may be conditioned on next to a trajectory: a reference answer, a goal, a principle, a persona.

A condition is read, and is no part of what the agent did. In stored data they stand where they were imported: the
reference answer in the task, the others in `metadata` of the trajectory or of its task. A request names them next to
its item.
"""

import json
import random
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Literal, get_args

from msgspec.structs import replace

from workers.errors import RewardError
from workers.schema.records import (
    Choice,
    DemonstrationRecord,
    FeedbackRecord,
    OutcomeRecord,
    PreferenceRecord,
    RankingRecord,
    RatingRecord,
    ScoreRecord,
    Trajectory,
    is_demonstrated,
    record_trajectories,
)

Condition = Literal["reference", "goal", "principle", "persona"]
CONDITIONS: tuple[Condition, ...] = get_args(Condition)
TITLES: dict[str, str] = {
    "reference": "Reference answer",
    "goal": "Goal",
    "principle": "Judge by this principle",
    "persona": "This is for",
}
REACHED = "reached"  # in the metadata: what a trajectory reached, see `hindsight_records`
MOST_CHARACTERS = 100_000
OPPOSITE = "The opposite of: "
# Ways to say it in training, so that a model learns the meaning and not the one phrase.
_OPPOSITES = (OPPOSITE, "Not this: ", "It is bad if this holds: ")
_TURNED: dict[Choice, Choice] = {"a": "b", "b": "a", "tie": "tie"}


def stated_conditions(trajectory: Trajectory) -> dict[str, str]:
    """Those that stored data states, by name."""
    found = {} if trajectory.task.reference is None else {"reference": trajectory.task.reference}
    for name in CONDITIONS[1:]:
        value = trajectory.metadata.get(name, trajectory.task.metadata.get(name))
        if value not in (None, ""):
            found[name] = condition_text(value)
    return found


def condition_text(value: Any) -> str:
    """A text as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def with_conditions(
    trajectory: Trajectory, conditioned: Collection[str], given: Mapping[str, str] | None = None
) -> Trajectory:
    """With those of `conditioned` that are given, else stated; in the order of CONDITIONS."""
    known = stated_conditions(trajectory) | trajectory.conditions | dict(given or {})
    found: dict[str, str] = {
        name: known[name] for name in CONDITIONS if name in conditioned and known.get(name)
    }
    return trajectory if found == trajectory.conditions else replace(trajectory, conditions=found)


def conditions_read(trajectory: Trajectory, conditioned: Sequence[str]) -> tuple[tuple[Condition, str], ...]:
    """(name, text) of those that a renderer reads, in the order of CONDITIONS."""
    return tuple(
        (name, trajectory.conditions[name])
        for name in CONDITIONS
        if name in conditioned and name in trajectory.conditions
    )


def parse_conditions(values: Mapping[str, Any], *, pointer: str) -> dict[str, str]:
    """Of a request: texts next to the reference answer. Raises RewardError where one is no text, or too long."""
    found: dict[str, str] = {}
    for name in CONDITIONS[1:]:
        value = values.get(name)
        if value is None or value == "":
            continue
        if not isinstance(value, str):
            raise RewardError(
                f"expected a text, got {type(value).__name__}; send the {name} in words.",
                pointer=f"{pointer}/{name}",
            )
        if len(value) > MOST_CHARACTERS:
            raise RewardError(
                f"the {name} has {len(value):,} characters; at most {MOST_CHARACTERS:,} are read.",
                pointer=f"{pointer}/{name}",
            )
        found[name] = value
    return found


def opposite(principle: str, phrase: str = OPPOSITE) -> str:
    """Sun et al. 2023 (arXiv 2310.05910) negate principles, so that a model has to read the one it is given."""
    return f"{phrase}{principle}"


def split_opposite(principle: str) -> tuple[str, bool]:
    """The principle that a text turns around, and whether it does."""
    phrase = next((phrase for phrase in _OPPOSITES if principle.startswith(phrase)), "")
    return principle.removeprefix(phrase), bool(phrase)


def conditioned_records(
    records: Iterable[FeedbackRecord], conditioned: Sequence[str]
) -> list[FeedbackRecord]:
    """The records with their conditions in their trajectories; as they are for a model that reads none.

    For a model that reads principles, feedback by a criterion is feedback overall, given its text as the principle.
    """
    kept = [*records]
    if not conditioned:
        return kept
    texts = _criterion_texts(kept) if "principle" in conditioned else {}
    found: list[FeedbackRecord] = []
    for record in kept:
        given: dict[str, str] = {}
        if "principle" in conditioned and isinstance(record, PreferenceRecord | RankingRecord | ScoreRecord):
            name = record.criterion
            if name is not None:
                given, record = {"principle": texts.get(name, name)}, _overall(record)
        found.append(_with_conditions(record, conditioned, given))
    return found


def training_records(
    records: Iterable[FeedbackRecord], *, negate: float, hindsight: int, seed: int
) -> list[FeedbackRecord]:
    """What a model learns from in place of records with conditions: a share of those with a principle turned around,
    with its opposite, and goals that were reached (`hindsight_records`). Drawn by `seed`; nothing is measured on them.
    """
    kept = [*records]
    dice = random.Random(f"principles/{seed}")  # noqa: S311 (not for secrets)
    return [
        *(_negated(record, dice, negate) for record in kept),
        *hindsight_records(kept, hindsight, seed=seed),
    ]


def _negated(record: FeedbackRecord, dice: random.Random, share: float) -> FeedbackRecord:
    principle = record_trajectories(record)[0].conditions.get("principle")
    if principle is None or dice.random() >= share or (turned := _turned_around(record)) is None:
        return record
    return _with_conditions(
        turned, ("principle",), {"principle": opposite(principle, dice.choice(_OPPOSITES))}
    )


def hindsight_records(records: Iterable[FeedbackRecord], count: int, *, seed: int = 0) -> list[OutcomeRecord]:
    """Outcomes by other goals than the one that was asked for (Andrychowicz et al. 2017, arXiv 1707.01495): of each
    trajectory, up to `count` of the goals that it `reached` as successes, and as many that only others reached as
    failures. Its `metadata` names them: a text, a list of texts, or numbers.
    """
    if count == 0:
        return []
    runs = {run.content_hash: run for record in records for run in record_trajectories(record)}
    reached = {name: _reached(run) for name, run in runs.items()}
    every = sorted({goal for goals in reached.values() for goal in goals})
    found = []
    for name, run in runs.items():
        dice = random.Random(f"hindsight/{seed}/{name}")  # noqa: S311 (not for secrets)
        own = dice.sample(reached[name], min(count, len(reached[name])))
        others = [goal for goal in every if goal not in {*reached[name], run.conditions.get("goal")}]
        for goals, success in ((own, True), (dice.sample(others, min(len(own), len(others))), False)):
            found += [
                OutcomeRecord(
                    trajectory=with_conditions(run, {"goal", *run.conditions}, {"goal": goal}),
                    success=success,
                )
                for goal in goals
            ]
    return found


def mismatched_demonstrations(records: Iterable[FeedbackRecord]) -> list[DemonstrationRecord]:
    """Of each demonstration under a condition, itself under another one that demonstrations have, as none; of the
    conditions that vary, one is drawn."""
    shown = [record for record in records if is_demonstrated(record) and record.weight > 0]
    known: dict[str, set[str]] = {}
    for record in shown:
        for name, text in record.trajectory.conditions.items():
            known.setdefault(name, set()).add(text)
    found = []
    for record in shown:
        conditions = record.trajectory.conditions
        varying = [name for name in conditions if len(known[name]) > 1]
        if varying:
            dice = random.Random(record.trajectory.content_hash)  # noqa: S311 (not for secrets)
            name = dice.choice(varying)
            other = dice.choice(sorted(known[name] - {conditions[name]}))
            changed = replace(record.trajectory, conditions=conditions | {name: other})
            found.append(replace(record, trajectory=changed, demonstration=False))
    return found


def with_reached(metadata: Mapping[str, Any], goal: str) -> dict[str, Any]:
    """Metadata in which a trajectory has reached a goal too."""
    goals = _reached_values(metadata)
    return {**metadata, REACHED: [*goals, *([] if goal in goals else [goal])]}


def without_reached(metadata: Mapping[str, Any], goal: str) -> dict[str, Any]:
    """Metadata in which it has not."""
    goals = [each for each in _reached_values(metadata) if each != goal]
    kept = {name: value for name, value in metadata.items() if name != REACHED}
    return {**kept, REACHED: goals} if goals else kept


def _reached(trajectory: Trajectory) -> list[str]:
    return [condition_text(each) for each in _reached_values(trajectory.metadata)]


def _reached_values(metadata: Mapping[str, Any]) -> list[Any]:
    value = metadata.get(REACHED)
    if value in (None, "", []):
        return []
    is_list = isinstance(value, list) and all(isinstance(each, str | list) for each in value)
    return value if is_list else [value]


def _criterion_texts(records: Iterable[FeedbackRecord]) -> dict[str, str]:
    """By name, the criterion with its definition, where a rubric gives one."""
    return {
        record.criterion: f"{record.criterion}: {record.definition}"
        for record in records
        if isinstance(record, ScoreRecord) and record.definition
    }


def _overall(
    record: PreferenceRecord | RankingRecord | ScoreRecord,
) -> PreferenceRecord | RankingRecord | RatingRecord:
    """The same feedback without the name of its criterion."""
    if not isinstance(record, ScoreRecord):
        return replace(record, criterion=None)
    return RatingRecord(
        trajectory=record.trajectory,
        rating=record.value,
        scale=record.scale,
        annotator=record.annotator,
        origin=record.origin,
        strict_reliability=record.strict_reliability,
        item=record.item,
        weight=record.weight,
    )


def _turned_around(record: FeedbackRecord) -> FeedbackRecord | None:
    """By the opposite of its principle; None where that says nothing: of two that are both bad, outcomes, steps."""
    if isinstance(record, PreferenceRecord):
        choice = _TURNED.get(record.choice)
        return None if choice is None else replace(record, choice=choice)
    if isinstance(record, RankingRecord):
        last = max(record.ranks)
        return replace(record, ranks=tuple(1 + last - rank for rank in record.ranks))
    if not isinstance(record, RatingRecord):
        return None
    if record.rating is None:
        return replace(record, accept=not record.accept)
    assert record.scale is not None
    return replace(record, rating=sum(record.scale) - record.rating)


def _with_conditions(
    record: FeedbackRecord, conditioned: Sequence[str], given: Mapping[str, str]
) -> FeedbackRecord:
    sides = tuple(
        with_conditions(side, {*conditioned, *side.conditions}, given) for side in record_trajectories(record)
    )
    if isinstance(record, PreferenceRecord):
        return replace(record, a=sides[0], b=sides[1])
    if isinstance(record, RankingRecord):
        return replace(record, trajectories=sides)
    return replace(record, trajectory=sides[0])
