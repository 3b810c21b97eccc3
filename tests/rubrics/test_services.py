"""Rubrics: a used version never changes, what did not change keeps its version, YAML there and back."""

import pytest

from apps.accounts.models import Project
from apps.annotation.services import create_campaign
from apps.core.errors import DomainError
from apps.rubrics import yaml_documents
from apps.rubrics.models import Criterion, Rubric
from apps.rubrics.services import CriterionDraft, draft_of, save_rubric

POLITE = CriterionDraft(name="polite", definition="Stays courteous.", good_example="I see.", weight=2, rank=1)
CORRECT = CriterionDraft(name="correct", scale_low=0, scale_high=3, rank=2)


def versions(rubric: Rubric) -> dict[str, int]:
    return {criterion.name: criterion.version for criterion in rubric.criteria.all()}


def test_an_unused_version_is_changed_in_its_place(project: Project) -> None:
    first = save_rubric(project=project, name="Good", criteria=[POLITE])
    again = save_rubric(project=project, name="Good", criteria=[POLITE, CORRECT], about="What counts.")
    assert (again.pk, again.version, again.about) == (first.pk, 1, "What counts.")
    assert versions(again) == {"polite": 1, "correct": 1}


def test_a_used_version_stays_and_only_what_changed_gets_a_new_one(project: Project) -> None:
    first = save_rubric(project=project, name="Good", criteria=[POLITE, CORRECT])
    create_campaign(project=project, name="Scores", feedback_types=["rubric"], rubric=first)
    before = yaml_documents.write(first)
    changed = CriterionDraft(name="correct", definition="Is true.", scale_low=0, scale_high=3, rank=2)
    second = save_rubric(project=project, name="Good", criteria=[POLITE, changed])
    assert (second.version, versions(second)) == (2, {"polite": 1, "correct": 2})
    assert yaml_documents.write(Rubric.objects.get(pk=first.pk)) == before
    assert save_rubric(project=project, name="Good", criteria=[POLITE, changed]).pk == second.pk


def test_weights_and_ranks_are_of_the_rubric_not_of_the_criterion(project: Project) -> None:
    first = save_rubric(project=project, name="Good", criteria=[POLITE])
    create_campaign(project=project, name="Scores", feedback_types=["rubric"], rubric=first)
    heavier = CriterionDraft(name="polite", definition="Stays courteous.", good_example="I see.", weight=9)
    second = save_rubric(project=project, name="Good", criteria=[heavier])
    assert second.version == 2 and versions(second) == {"polite": 1}
    assert [entry.weight for entry in first.entries.all()] == [2]


@pytest.mark.parametrize(
    ("name", "criteria", "pointer"),
    [
        ("", [POLITE], "/name"),
        ("Good", [], "/criteria"),
        ("Good", [POLITE, POLITE], "/criteria/1/name"),
        ("Good", [CriterionDraft(name=" ")], "/criteria/0/name"),
        ("Good", [CriterionDraft(name="x", scale_low=5, scale_high=5)], "/criteria/0/scale"),
        ("Good", [CriterionDraft(name="x", scale_low=0, scale_high=100)], "/criteria/0/scale"),
        ("Good", [CriterionDraft(name="x", rank=0)], "/criteria/0/rank"),
        ("Good", [CriterionDraft(name=f"c{n}") for n in range(31)], "/criteria"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(
    project: Project, name: str, criteria: list[CriterionDraft], pointer: str
) -> None:
    with pytest.raises(DomainError) as caught:
        save_rubric(project=project, name=name, criteria=criteria)
    assert caught.value.pointer == pointer
    assert not Rubric.objects.exists() and not Criterion.objects.exists()


def test_yaml_there_and_back(project: Project) -> None:
    odd = CriterionDraft(name="no: yes", definition="#1\n- \"quotes\" 'too'", bad_example="null", weight=0.5)
    rubric = save_rubric(project=project, name="Good", criteria=[POLITE, CORRECT, odd], about="ünïcode")
    name, about, criteria = yaml_documents.read(yaml_documents.write(rubric))
    assert (name, about) == ("Good", "ünïcode")
    assert criteria == [draft_of(entry) for entry in rubric.entries.all()] == [POLITE, CORRECT, odd]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name: [", "not valid YAML"),
        ("- a", "not list"),
        ("name: x\ncolor: red", "Unknown key 'color'"),
        ("name: x\ncriteria: many", "criteria must be a list"),
        ("name: x\ncriteria: [polite]", "A criterion must be"),
        ("name: x\ncriteria: [{name: 3}]", "put it in quotes"),
        ("name: x\ncriteria: [{name: a, scale: 5}]", "two numbers"),
        ("name: x\ncriteria: [{name: a, rank: 1.5}]", "whole number"),
        ("name: x\ncriteria: [{name: a, weight: heavy}]", "weight must be a number"),
        ("a: &a [x]\nname: *a", "aliases"),
        ("name: !!python/object/apply:os.system [true]", "not valid YAML"),
    ],
)
def test_yaml_that_is_no_rubric_is_refused_in_words(text: str, message: str) -> None:
    with pytest.raises(DomainError, match=message):
        yaml_documents.read(text)
