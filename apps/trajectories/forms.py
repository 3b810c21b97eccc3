"""Forms of trajectories, with the widgets our look expects."""

from typing import Any

from django import forms

from apps.accounts.models import Project
from apps.trajectories import formats
from apps.trajectories.patterns import PATTERNS
from apps.trajectories.selectors import JUDGED, fact_names, list_agents

_CONTROL, _SELECT, _CHECK = ({"class": name} for name in ("form-control", "form-select", "form-check-input"))


def _number(step: int | str) -> forms.NumberInput:
    return forms.NumberInput(attrs=_CONTROL | {"step": step})


class FilterForm(forms.Form):
    """The explorer's filters; its fields are the arguments of selectors.filter_trajectories."""

    text = forms.CharField(
        required=False,
        max_length=400,
        label="Words in any step",
        widget=forms.TextInput(
            attrs=_CONTROL
            | {"type": "search", "placeholder": 'refund "too late" -weather'}
            | {"data-key": "/", "data-key-label": "Search"}
        ),
    )
    task = forms.CharField(required=False, max_length=200, widget=forms.TextInput(attrs=_CONTROL))
    agent = forms.ChoiceField(required=False, widget=forms.Select(attrs=_SELECT))
    version = forms.CharField(required=False, max_length=200, widget=forms.TextInput(attrs=_CONTROL))
    success = forms.TypedChoiceField(
        required=False,
        label="Outcome",
        choices=[("", "Any outcome"), ("yes", "Success"), ("no", "Failure")],
        coerce=lambda value: value == "yes",
        empty_value=None,
        widget=forms.Select(attrs=_SELECT),
    )
    pattern = forms.ChoiceField(
        required=False,
        label="Failure pattern",
        choices=[("", "Any"), *PATTERNS.items()],
        widget=forms.Select(attrs=_SELECT),
    )
    tag = forms.CharField(required=False, max_length=60, widget=forms.TextInput(attrs=_CONTROL))
    format = forms.ChoiceField(
        required=False,
        choices=[("", "Any format"), *((format.name, format.name) for format in formats.FORMATS.values())],
        widget=forms.Select(attrs=_SELECT),
    )
    fact = forms.ChoiceField(required=False, label="Metric or judge", widget=forms.Select(attrs=_SELECT))
    judged = forms.ChoiceField(
        required=False,
        choices=[("", "Any"), *JUDGED.items()],
        widget=forms.Select(attrs=_SELECT),
    )
    steps_from = forms.IntegerField(required=False, min_value=0, max_value=2**31 - 1, widget=_number(1))
    steps_to = forms.IntegerField(required=False, min_value=0, max_value=2**31 - 1, widget=_number(1))
    reward_from = forms.FloatField(required=False, widget=_number("any"))
    reward_to = forms.FloatField(required=False, widget=_number("any"))
    metadata = forms.CharField(
        required=False, max_length=400, widget=forms.TextInput(attrs=_CONTROL | {"placeholder": "key=value"})
    )

    def __init__(self, *args: Any, project: Project, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        names = dict.fromkeys(name for name, _ in list_agents(project) if name)
        field = self.fields["agent"]
        assert isinstance(field, forms.ChoiceField)
        field.choices = [("", "Any agent"), *((name, name) for name in names)]
        field = self.fields["fact"]
        assert isinstance(field, forms.ChoiceField)
        field.choices = [("", "Any metric"), *((name, name) for name in fact_names(project))]

    def clean_metadata(self) -> str:
        value = str(self.cleaned_data["metadata"]).strip()
        if value and not all(part.strip() for part in value.partition("=")):
            raise forms.ValidationError("Enter key=value, such as model=large.")
        return value


class UploadForm(forms.Form):
    file = forms.FileField(
        help_text="JSON Lines, a JSON array or one JSON document, optionally packed as .gz, .zst or .zip.",
        widget=forms.ClearableFileInput(attrs=_CONTROL),
    )
    format = forms.ChoiceField(
        choices=[
            (formats.AUTO, "Detect automatically"),
            *((format.name, f"{format.name}: {format.title}") for format in formats.FORMATS.values()),
        ],
        widget=forms.Select(attrs=_SELECT),
    )


class ConfirmForm(forms.Form):
    """token: what was uploaded, signed; nothing else may be imported by it."""

    token = forms.CharField(widget=forms.HiddenInput)
    keep_good = forms.BooleanField(required=False, widget=forms.CheckboxInput(attrs=_CHECK))


class SaveFilterForm(forms.Form):
    name = forms.CharField(max_length=60, widget=forms.TextInput(attrs=_CONTROL))
    query = forms.CharField(max_length=2000, widget=forms.HiddenInput)


class TagForm(forms.Form):
    """chosen: keys of trajectories; every: all that `query`, of the explorer's address, finds."""

    tag = forms.CharField(max_length=60, widget=forms.TextInput(attrs=_CONTROL))
    query = forms.CharField(required=False, max_length=2000, widget=forms.HiddenInput)
    every = forms.BooleanField(required=False, widget=forms.CheckboxInput(attrs=_CHECK))
    remove = forms.BooleanField(required=False)
