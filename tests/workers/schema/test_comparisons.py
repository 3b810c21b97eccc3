from workers.schema import (
    OutcomeRecord,
    PreferenceRecord,
    RankingRecord,
    RatingRecord,
    ScoreRecord,
    Step,
    Task,
    Trajectory,
)
from workers.schema.comparisons import Comparison, comparisons

A, B, C = (Trajectory(steps=(Step(source="agent"),), task=Task(id="t"), id=name) for name in "abc")


def test_preferences() -> None:
    said = [
        PreferenceRecord(annotator="ann", a=A, b=B, choice=choice, weight=0.5)  # type: ignore[arg-type]
        for choice in ("a", "b", "tie", "both_bad")
    ]
    assert [comparison.preferred for comparison in comparisons(said)] == [1, 0, 0.5, 0.5]
    assert next(comparisons(said)) == Comparison("t", "a", "b", 1.0, 0.5)


def test_a_ranking_is_its_pairs() -> None:
    said = RankingRecord(annotator="ann", trajectories=(A, B, C), ranks=(2, 1, 2))
    found = {(comparison.a, comparison.b): comparison.preferred for comparison in comparisons([said])}
    assert found == {("a", "b"): 0.0, ("a", "c"): 0.5, ("b", "c"): 1.0}


def test_two_that_one_annotator_rated_are_compared() -> None:
    def rated(run: Trajectory, rating: float, by: str = "ann") -> RatingRecord:
        return RatingRecord(annotator=by, trajectory=run, rating=rating, scale=(1, 5))

    found = list(comparisons([rated(A, 4), rated(B, 2), rated(C, 4), rated(B, 5, by="ben")]))
    assert {(comparison.a, comparison.b): comparison.preferred for comparison in found} == {
        ("a", "b"): 1.0,
        ("b", "c"): 0.0,
    }


def test_scores_are_compared_by_their_criterion_only() -> None:
    def scored(run: Trajectory, criterion: str, value: float) -> ScoreRecord:
        return ScoreRecord(annotator="ann", trajectory=run, criterion=criterion, value=value, scale=(1, 5))

    said = [scored(A, "polite", 1), scored(B, "polite", 3), scored(C, "short", 5)]
    assert list(comparisons(said)) == [Comparison("t", "a", "b", 0.0)]


def test_outcomes() -> None:
    said = [
        OutcomeRecord(trajectory=A, success=True),
        OutcomeRecord(trajectory=B, success=False),
        OutcomeRecord(trajectory=C, success=True, reward=0.5),
    ]
    assert {(comparison.a, comparison.b): comparison.preferred for comparison in comparisons(said)} == {
        ("a", "b"): 1.0,
        ("a", "c"): 1.0,
        ("b", "c"): 0.0,
    }
