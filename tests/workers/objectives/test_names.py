"""Every name that a recipe may give has an objective in its file."""

import pytest

from workers.objectives import Objective, components, objective_class
from workers.schema.recipe import GENERATIVE, IMPLICIT, SINGLE, Recipe


@pytest.mark.parametrize("name", [*SINGLE, IMPLICIT])
def test_the_file_of_a_name_has_its_objective(name: str) -> None:
    found = objective_class(name)
    assert issubclass(found, Objective) and found.name == name


def test_joint_is_of_none_with_a_model_of_its_kind() -> None:
    found = components(Recipe(objective="joint"))
    assert {"bradley_terry", "outcome", "process"} <= set(found) <= set(SINGLE)
    assert not {IMPLICIT, GENERATIVE} & set(found)
