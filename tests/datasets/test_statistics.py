import pytest
from msgspec.structs import replace

from apps.datasets.statistics import content_hash, is_usable_pair, record_digest
from workers.schema import Part, PreferenceRecord, ScoreRecord, Step, Task, Trajectory


def trajectory(text: str, **fields: object) -> Trajectory:
    step = Step(source="agent", message=(Part(text=text),))
    return Trajectory(steps=(step,), task=Task(id="t"), **fields)  # type: ignore[arg-type]


def preference(
    annotator: str = "ann", choice: str = "a", item: str = "1", **fields: object
) -> PreferenceRecord:
    return PreferenceRecord(
        a=trajectory("yes"),
        b=trajectory("no"),
        choice=choice,  # type: ignore[arg-type]
        annotator=annotator,
        item=item,
        **fields,  # type: ignore[arg-type]
    )


def test_the_digest_knows_nothing_of_row_ids_and_other_records() -> None:
    preference_record = preference()
    moved = replace(preference_record, a=trajectory("yes", id="4711"), strict_reliability=0.5)
    assert record_digest(preference_record) == record_digest(moved)


def test_the_digest_sees_what_was_said() -> None:
    preference_record = preference()
    others = [
        preference(choice="b"),
        preference(annotator="ben"),
        preference(strength=2),
        preference(criterion="polite"),
        replace(preference_record, a=trajectory("yes!")),
        replace(preference_record, a=trajectory("yes", success=True)),
        replace(preference_record, a=preference_record.b, b=preference_record.a),
    ]
    assert len({record_digest(each) for each in [preference_record, *others]}) == len(others) + 1


def test_a_score_without_a_weight_has_the_digest_that_it_had_before_there_were_weights() -> None:
    score = ScoreRecord(
        trajectory=trajectory("yes"),
        annotator="ann",
        item="1",
        criterion="polite",
        value=1.0,
        scale=(0.0, 1.0),
    )
    assert record_digest(score).hex() == "44f50721e640c04d3ef94f94ac61d037ae125d9f370d3d6ade4d1bb54c06ddaa"
    assert record_digest(replace(score, criterion_weight=1.0)) != record_digest(score)


def test_the_hash_is_of_sets_in_splits() -> None:
    first, second = record_digest(preference()), record_digest(preference(choice="b"))
    hashed = content_hash({"train": [first, second], "test": []})
    assert hashed == content_hash({"test": [], "train": [second, first]})
    assert hashed != content_hash({"train": [first], "test": [second]})
    assert hashed != content_hash({"train": [first, second, second], "test": []})


@pytest.mark.parametrize("choice", ["a", "b", "tie", "both_bad"])
def test_every_choice_can_be_used(choice: str) -> None:
    assert is_usable_pair(preference(choice=choice))


def test_what_cannot_be_used() -> None:
    assert not is_usable_pair(preference(criterion="polite"))
    assert not is_usable_pair(replace(preference(), b=trajectory("yes", id="another row")))
