"""Forms of trajectories, with the widgets our look expects."""

from typing import Any

from django import forms

from apps.accounts.models import Project
from apps.trajectories import formats

_CONTROL, _SELECT, _CHECK = ({"class": name} for name in ("form-control", "form-select", "form-check-input"))


class FilterForm(forms.Form):
    task = forms.CharField(required=False, max_length=200, widget=forms.TextInput(attrs=_CONTROL))
    agent = forms.ChoiceField(required=False, widget=forms.Select(attrs=_SELECT))
    success = forms.TypedChoiceField(
        required=False,
        choices=[("", "Any outcome"), ("yes", "Success"), ("no", "Failure")],
        coerce=lambda value: value == "yes",
        empty_value=None,
        widget=forms.Select(attrs=_SELECT),
    )

    def __init__(self, *args: Any, project: Project, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        names = project.trajectories.exclude(agent_name="").order_by("agent_name")
        found = names.values_list("agent_name", flat=True).distinct()
        field = self.fields["agent"]
        assert isinstance(field, forms.ChoiceField)
        field.choices = [("", "Any agent"), *((name, name) for name in found[:200])]


class UploadForm(forms.Form):
    file = forms.FileField(
        help_text="JSON lines, a JSON array or one JSON document; .gz and .zst are unpacked.",
        widget=forms.ClearableFileInput(attrs=_CONTROL),
    )
    format = forms.ChoiceField(
        choices=[
            (formats.AUTO, "Find out"),
            *((one.name, f"{one.name}: {one.title}") for one in formats.FORMATS.values()),
        ],
        widget=forms.Select(attrs=_SELECT),
    )


class ConfirmForm(forms.Form):
    """token: what was uploaded, signed; nothing else may be imported by it."""

    token = forms.CharField(widget=forms.HiddenInput)
    keep_good = forms.BooleanField(required=False, widget=forms.CheckboxInput(attrs=_CHECK))
