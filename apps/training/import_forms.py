"""The form of the page that imports a public reward model."""

from typing import Any

from django import forms

from apps.accounts.models import Project
from apps.core.errors import DomainError
from apps.core.jobs.job_queue import JobState
from apps.core.storage.model_folders import listed_names
from apps.datasets.selectors import list_dataset_versions
from workers.schema.import_options import OWN_TRAJECTORIES, TYPES, ImportOptions

_CONTROL = {"class": "form-control"}
_SELECT = {"class": "form-select"}


class ModelImportForm(forms.Form):
    """A field for each of ImportOptions is added: what has no field of its own here is a field of text."""

    source = forms.CharField(
        max_length=300,
        help_text="hf://ORG/NAME@REVISION of the Hugging Face hub, or the name of a folder that the operator listed.",
        widget=forms.TextInput(attrs=_CONTROL | {"list": "model-folders", "spellcheck": "false"}),
    )
    name = forms.SlugField(
        required=False,
        max_length=60,
        label="Model name",
        help_text="Leave empty for the name of the source.",
        widget=forms.TextInput(attrs=_CONTROL),
    )
    calibration = forms.ChoiceField(
        required=False,
        label="Calibrate on",
        help_text="Trajectories by which the median and standard deviation of its rewards are measured. Without them "
        "they are 0 and 1.",
        widget=forms.Select(attrs=_SELECT),
    )
    dry_run = forms.BooleanField(
        required=False,
        label="Only recognise the model",
        help_text="Says what it is, and imports nothing.",
        widget=forms.CheckboxInput(attrs={"class": "form-check-input"}),
    )

    def __init__(self, *args: Any, project: Project, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        versions = list_dataset_versions(project).filter(state=JobState.SUCCEEDED, withdrawn_at=None)
        calibration = self.fields["calibration"]
        assert isinstance(calibration, forms.ChoiceField)
        calibration.choices = [
            ("", "nothing"),
            (OWN_TRAJECTORIES, "trajectories of this project"),
            *((f"{row.name}@{row.version}", f"dataset {row.name}@{row.version}") for row in versions[:50]),
        ]
        for option in ImportOptions.without_paths():
            self.fields[f"option_{option.name}"] = _option_field(option)
        self.folders = listed_names()

    @property
    def option_fields(self) -> list[forms.BoundField]:
        return [self[f"option_{option.name}"] for option in ImportOptions.without_paths()]

    def values(self) -> dict[str, Any]:
        """What `start_import` takes."""
        data = self.cleaned_data
        options = {option.name: data[f"option_{option.name}"] for option in ImportOptions.without_paths()}
        return {
            **{name: data[name] for name in ("source", "name", "calibration", "dry_run")},
            "options": {name: value for name, value in options.items() if value not in ("", None)},
        }

    def add_domain_error(self, error: DomainError) -> None:
        """Show the error of the service at its field."""
        name = (error.pointer or "").strip("/").replace("options/", "option_")
        self.add_error(name if name in self.fields else None, error.message)


def _option_field(option: Any) -> forms.Field:
    shared: dict[str, Any] = {
        "required": False,
        "label": option.name.replace("_", " ").capitalize(),
        "help_text": f"{option.metadata['help'][0].upper()}{option.metadata['help'][1:]}.",
    }
    if option.name == "type":
        choices = [("", "recognise it"), *((name, name) for name in TYPES)]
        return forms.ChoiceField(choices=choices, widget=forms.Select(attrs=_SELECT), **shared)
    if isinstance(option.default, bool):
        return forms.BooleanField(widget=forms.CheckboxInput(attrs={"class": "form-check-input"}), **shared)
    if isinstance(option.default, int):
        return forms.IntegerField(min_value=0, widget=forms.NumberInput(attrs=_CONTROL), **shared)
    if isinstance(option.default, float):
        return forms.FloatField(widget=forms.NumberInput(attrs=_CONTROL | {"step": "any"}), **shared)
    return forms.CharField(max_length=2000, widget=forms.TextInput(attrs=_CONTROL), **shared)
