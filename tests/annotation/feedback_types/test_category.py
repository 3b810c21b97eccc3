"""One or several categories of every trajectory; "none of these" is an answer, "cannot tell" leaves nothing."""

import pytest

from apps.annotation.feedback_types.category import CATEGORY
from apps.annotation.feedback_types.step import STEP
from apps.annotation.presentation import PresentedItem
from apps.core.errors import DomainError
from apps.rubrics.models import Criterion
from apps.trajectories.models import Trajectory


def categories(*names: str) -> list[dict[str, str]]:
    return [{"name": name, "definition": ""} for name in names]


TOPIC = Criterion(pk=7, name="topic", answer_type="category", categories=categories("travel", "shop"))
FAILURE = Criterion(
    pk=9, name="failure", answer_type="categories", categories=categories("wrong tool", "gave up", "loop")
)
TAXONOMY = Criterion(pk=11, name="errors", answer_type="step_tags", categories=categories("typo", "loop"))
SHOWN = PresentedItem(
    [Trajectory(pk=1, agent_step_count=3), Trajectory(pk=2, agent_step_count=3)],
    (1, 0),
    criteria=[Criterion(pk=3, name="polite"), TOPIC, FAILURE, TAXONOMY],
)
FIELDS = {
    "category-left-7": "1",
    "category-left-7-note": "a basket",
    "category-right-7": "none",
    "category-left-9-0": "1",
    "category-left-9-2": "1",
    "category-right-9": "empty",
}


def test_categories_by_side_there_and_back() -> None:
    rows = CATEGORY.parse(FIELDS, SHOWN)
    assert [(row.trajectory_id, row.criterion.name, row.categories, row.note) for row in rows] == [
        (2, "topic", ["shop"], "a basket"),
        (2, "failure", ["wrong tool", "loop"], ""),
        (1, "failure", [], ""),
    ]
    assert CATEGORY.form_values(rows, SHOWN) == FIELDS
    assert CATEGORY.summary(rows, SHOWN) == (
        "topic A: shop; failure A: wrong tool, loop; failure B: none of the categories"
    )


@pytest.mark.parametrize(
    ("change", "pointer", "message"),
    [
        ({"category-right-9": ""}, "/category-right-9", "“failure” for B has no answer; choose ?"),
        ({"category-left-9": "empty"}, "/category-left-9", "also an answer that excludes them"),
        ({"category-left-7": "2"}, "/category-left-7", "Unknown category '2'; allowed are 0, 1, none"),
        ({"category-left-7": "empty"}, "/category-left-7", "Unknown category 'empty'"),
    ],
)
def test_missing_and_contradicting_answers_are_refused(
    change: dict[str, str], pointer: str, message: str
) -> None:
    with pytest.raises(DomainError, match=message.replace("?", r"\?")) as caught:
        CATEGORY.parse(FIELDS | change, SHOWN)
    assert caught.value.pointer == pointer


def test_checkboxes_are_asked_only_where_several_can_apply() -> None:
    questions = CATEGORY.questions(FIELDS, SHOWN)
    assert [question.title for question in questions] == ["topic, A", "topic, B", "failure, A", "failure, B"]
    assert [option.value for option in questions[0].options] == ["0", "1", "none"]
    assert [box.is_checked for box in questions[2].checkboxes] == [True, False, True]
    assert [option.value for option in questions[2].options] == ["empty", "none"]


def test_tags_of_steps_there_and_back() -> None:
    fields = {
        "step-left-0": "bad",
        "step-left-0-tag-1": "1",
        "step-left-0-tag-0": "1",
        "step-right-2-tag-1": "1",
    }
    rows = STEP.parse(fields, SHOWN)
    assert [(row.trajectory_id, row.labels, row.tags) for row in rows] == [
        (2, {"0": "bad"}, {"0": ["typo", "loop"]}),
        (1, {}, {"2": ["loop"]}),
    ]
    assert STEP.form_values(rows, SHOWN) == fields
    assert STEP.summary(rows, SHOWN) == "A: 1 bad, loop, typo; B: loop"
    shared = STEP.parse({"step-both-1-tag-0": "1"}, SHOWN)
    assert [row.tags for row in shared] == [{"1": ["typo"]}] * 2


def test_a_tag_that_the_taxonomy_does_not_have_is_refused() -> None:
    with pytest.raises(DomainError, match="tags 0 to 1"):
        STEP.parse({"step-left-0-tag-2": "1"}, SHOWN)
    with pytest.raises(DomainError, match="agent steps are 0 to 2"):
        STEP.parse({"step-left-3-tag-0": "1"}, SHOWN)
