"""Forms of the training pages."""

from typing import Any

from django import forms

from apps.accounts.models import Project
from apps.core.errors import DomainError
from apps.core.jobs.job_queue import JobState
from apps.datasets.models import DatasetVersion
from apps.datasets.selectors import list_dataset_versions
from apps.training import recipes
from apps.training.launching.launchers import missing_launchers, set_up_launchers
from apps.training.launching.options import MAX_GPUS, MAX_HOSTS
from apps.training.models import LOCAL, OWN, RewardModel
from apps.training.selectors import possible_parents
from apps.training.services import MAX_SEED
from apps.training.tracker_options import MAX_PROJECT_LENGTH
from workers.schema.builtin_recipes import AUTO
from workers.schema.recipe import Recipe
from workers.schema.trackers import TRACKER_PACKAGES

_CONTROL = {"class": "form-control"}
_SELECT = {"class": "form-select"}
# Where an error of a service is shown; other pointers are keys of the recipe.
_FIELDS = (
    "dataset",
    "recipe",
    "name",
    "seed",
    "parent",
    "track",
    "track_project",
    "track_weights",
    "save_as",
    "on",
    "hosts",
    "gpus",
)


class DatasetVersionChoice(forms.ModelChoiceField):
    def label_from_instance(self, obj: Any) -> str:
        return f"{obj.name}@{obj.version}: {obj.usable_pairs} usable pairs"


class ModelChoice(forms.ModelChoiceField):
    def label_from_instance(self, obj: Any) -> str:
        return f"{obj.name}@{obj.version}"


class LauncherSelect(forms.Select):
    """Launchers that are not set up are shown, and cannot be chosen. missing: their names."""

    missing: frozenset[str] = frozenset()

    def create_option(self, name: str, value: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
        option: dict[str, Any] = super().create_option(name, value, *args, **kwargs)
        if value in self.missing:
            option["attrs"]["disabled"] = True
        return option


class RunForm(forms.Form):
    dataset = DatasetVersionChoice(
        queryset=DatasetVersion.objects.none(), empty_label=None, widget=forms.Select(attrs=_SELECT)
    )
    recipe = forms.ChoiceField(
        initial=AUTO,
        help_text=f"“{AUTO}” compares a few recipes by cross-validation on the training data, and takes the simplest "
        "of those that are as good as the best.",
        widget=forms.Select(attrs=_SELECT),
    )
    toml = forms.CharField(
        required=False,
        label="Custom recipe",
        help_text="TOML, used with the recipe “custom (TOML)”. Missing keys have their defaults, shown on the right.",
        widget=forms.Textarea(attrs={"class": "form-control mono", "rows": 8, "spellcheck": "false"}),
    )
    save_as = forms.SlugField(
        required=False,
        max_length=60,
        label="Save recipe as",
        help_text="Other runs can then use it by this name.",
        widget=forms.TextInput(attrs=_CONTROL),
    )
    name = forms.SlugField(
        required=False,
        max_length=60,
        label="Model name",
        help_text="Leave empty for the name of the dataset.",
        widget=forms.TextInput(attrs=_CONTROL),
    )
    parent = ModelChoice(
        queryset=RewardModel.objects.none(),
        required=False,
        label="Parent model",
        empty_label="none",
        help_text="Training starts with its weights. Backbone and widths must match.",
        widget=forms.Select(attrs=_SELECT),
    )
    seed = forms.IntegerField(
        initial=0, min_value=0, max_value=MAX_SEED, widget=forms.NumberInput(attrs=_CONTROL)
    )

    on = forms.ChoiceField(
        required=False,
        initial=LOCAL,
        label="Train on",
        help_text="A cluster fetches the dataset and sends checkpoints and the model back.",
        widget=LauncherSelect(attrs=_SELECT),
    )
    hosts = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=MAX_HOSTS,
        label="Hosts",
        help_text="Of a cluster; leave empty for one.",
        widget=forms.NumberInput(attrs=_CONTROL),
    )
    gpus = forms.IntegerField(
        required=False,
        min_value=0,
        max_value=MAX_GPUS,
        label="GPUs on each host",
        help_text="Of a cluster; leave empty for what this installation sets.",
        widget=forms.NumberInput(attrs=_CONTROL),
    )
    track = forms.MultipleChoiceField(
        required=False,
        label="Experiment trackers",
        choices=[(name, package.title) for name, package in TRACKER_PACKAGES.items()],
        help_text="Metrics, recipe, report and final state are also logged there. Addresses and keys are in the "
        "environment of the worker.",
        widget=forms.CheckboxSelectMultiple(attrs={"class": "form-check-input"}),
    )
    track_project = forms.CharField(
        required=False,
        max_length=MAX_PROJECT_LENGTH,
        label="Experiment or project at the tracker",
        help_text="Leave empty for the one that the worker's environment names, or a new one named after this project.",
        widget=forms.TextInput(attrs=_CONTROL),
    )
    track_weights = forms.BooleanField(
        required=False,
        label="Upload the model to the trackers",
        help_text="By default only the report and the model's manifest are uploaded.",
        widget=forms.CheckboxInput(attrs={"class": "form-check-input"}),
    )

    def __init__(self, *args: Any, project: Project, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.project = project
        dataset, recipe, parent = (self.fields[name] for name in ("dataset", "recipe", "parent"))
        assert isinstance(dataset, DatasetVersionChoice)
        assert isinstance(recipe, forms.ChoiceField)
        assert isinstance(parent, ModelChoice)
        on = self.fields["on"]
        assert isinstance(on, forms.ChoiceField)
        missing = missing_launchers(project)
        assert isinstance(on.widget, LauncherSelect)
        on.widget.missing = frozenset(each.name for each in missing)
        on.choices = [
            *((each.name, each.title) for each in set_up_launchers(project)),
            *((each.name, f"{each.title} (not set up: {each.needs})") for each in missing),
        ]
        parent.queryset = possible_parents(project)
        dataset.queryset = list_dataset_versions(project).filter(state=JobState.SUCCEEDED, withdrawn_at=None)
        recipe.choices = [*((name, name) for name in recipes.names_for(project)), (OWN, "custom (TOML)")]

    @property
    def is_own(self) -> bool:
        return bool(self.cleaned_data["recipe"] == OWN)

    def selection(self) -> tuple[DatasetVersion | None, Recipe | None, str]:
        """Dataset and recipe of the form, submitted or not; and the error of the recipe, in words."""
        dataset, names = self.fields["dataset"], self.fields["recipe"]
        assert isinstance(dataset, DatasetVersionChoice)
        assert isinstance(names, forms.ChoiceField)
        try:
            dataset_version = dataset.clean(self["dataset"].value())
        except forms.ValidationError:
            dataset_version = dataset.queryset.first() if dataset.queryset is not None else None
        try:
            return dataset_version, self._selected_recipe(dataset_version), ""
        except DomainError as error:
            return dataset_version, None, error.message

    def _selected_recipe(self, dataset_version: DatasetVersion | None) -> Recipe:
        name = self["recipe"].value() or AUTO
        if name == OWN:
            return recipes.check(self["toml"].value() or "")
        chosen = recipes.named(self.project, name)
        return (recipes.for_dataset(chosen, dataset_version) if dataset_version else chosen).recipe

    def add_domain_error(self, error: DomainError) -> None:
        """Show the error of a service at its field."""
        field = (error.pointer or "").strip("/").split("/")[0]
        if field not in _FIELDS:
            field = "toml" if error.pointer is not None and self.is_own else ""
        where = f" (at {error.pointer})" if field == "toml" and error.pointer else ""
        self.add_error(field or None, error.message + where)
