"""`client.models.next_to_judges` names the models of runs, without their project."""

from typing import Any

import pytest
from touchstone_client.resources.training import Models, TrainingRun


def test_models_and_runs_are_named_in_the_address() -> None:
    models: Models[Any] = Models("desk", None)
    next_to_judges = vars(Models)["next_to_judges"].function
    run = TrainingRun(run=3, state="succeeded", model="desk/large@2")
    asked = next_to_judges(models, "desk/small@1", also=[run])
    path = "/api/v1/projects/desk/models/small@1/next-to-judges"
    assert (asked.path, asked.params) == (path, {"also": ["large@2"]})
    with pytest.raises(ValueError, match="run 4 has no model; it is running"):
        next_to_judges(models, TrainingRun(run=4, state="running"))
