"""Forms of trajectories, with the widgets our look expects."""

from typing import Any

from django import forms

from apps.accounts.models import Project
from apps.trajectories import formats
from apps.trajectories.formats import mapping
from apps.trajectories.models import SavedMapping
from apps.trajectories.patterns import PATTERNS
from apps.trajectories.saved import MAPPING
from apps.trajectories.selectors import JUDGED, fact_names, list_agents
from workers.errors import InvalidRecord

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
    speaker = forms.CharField(required=False, max_length=200, widget=forms.TextInput(attrs=_CONTROL))
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


class _FilesInput(forms.ClearableFileInput):
    allow_multiple_selected = True


class _FilesField(forms.FileField):
    """One file or several. Cleans to a list of them."""

    widget = _FilesInput

    def clean(self, data: Any, initial: Any = None) -> Any:
        files = data if isinstance(data, list | tuple) else [data]
        return [super(_FilesField, self).clean(file, initial) for file in files or [None]]


class UploadForm(forms.Form):
    """names: paths of the files in the folder they were chosen from, as a JSON array in their order."""

    file = _FilesField(
        label="Files",
        help_text="JSON Lines, JSON, Parquet, Arrow or CSV, optionally packed (.gz, .zst, .bz2, .xz), or a .zip or "
        ".tar of them.",
        widget=_FilesInput(attrs=_CONTROL | {"multiple": True}),
    )
    names = forms.JSONField(required=False, widget=forms.HiddenInput)
    format = forms.ChoiceField(widget=forms.Select(attrs=_SELECT))

    def __init__(self, project: Project, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        saved = SavedMapping.objects.filter(project=project).order_by("name").values_list("name", flat=True)
        self.fields["format"].choices = [  # type: ignore[attr-defined]
            (formats.AUTO, "Detect automatically"),
            *((f"{MAPPING}{name}", f"Saved mapping: {name}") for name in saved),
            *((format.name, f"{format.name}: {format.title}") for format in formats.FORMATS.values()),
        ]

    def clean_names(self) -> list[str]:
        names = self.cleaned_data["names"]
        return [name if isinstance(name, str) else "" for name in names] if isinstance(names, list) else []


class MappingForm(forms.Form):
    """Which field of a document is what. token: what was uploaded, signed. paths: those of its first documents, with an
    example of each."""

    token = forms.CharField(widget=forms.HiddenInput)
    name = forms.CharField(
        required=False,
        max_length=60,
        label="Save this mapping as",
        help_text="It is then in the list of formats, for the next file of this shape.",
        widget=forms.TextInput(attrs=_CONTROL),
    )

    def __init__(self, paths: dict[str, str], *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choices = [("", "Not in the file"), *((path, f"{path}: {text}") for path, text in paths.items())]
        for field, description in mapping.FIELDS.items():
            self.fields[f"path_{field}"] = forms.ChoiceField(
                required=False,
                label=field.capitalize(),
                help_text=description,
                choices=choices,
                widget=forms.Select(attrs=_SELECT),
            )
        self.order_fields([*(f"path_{field}" for field in mapping.FIELDS), "name", "token"])

    def field_mapping(self) -> mapping.FieldMapping | None:
        """The mapping that was chosen; None where it is none, with the form's errors set."""
        if not self.is_valid():
            return None
        chosen = {field: self.cleaned_data[f"path_{field}"] for field in mapping.FIELDS}
        try:
            return mapping.FieldMapping({field: path for field, path in chosen.items() if path})
        except InvalidRecord as error:
            self.add_error(None, f"{error.message[0].upper()}{error.message[1:]}")
            return None


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
