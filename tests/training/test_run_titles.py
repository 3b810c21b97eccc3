"""What a training run is called."""

from apps.training.models import OWN, TrainingRun


def test_a_run_without_a_saved_recipe_has_a_title() -> None:
    assert str(TrainingRun(pk=1, recipe_name=OWN)) == "run 1 of a custom recipe"
    assert str(TrainingRun(pk=1, recipe_name="quick")) == "run 1 of quick"
