"""Forms of the rules of retention, and of the deletion of a project."""

from django import forms

from apps.lifecycle.models import RetentionRule
from apps.lifecycle.retention import MOST_DAYS

_NUMBER = {"class": "form-control", "inputmode": "numeric"}


def _days(label: str, help_text: str) -> forms.IntegerField:
    return forms.IntegerField(
        label=label,
        required=False,
        min_value=1,
        max_value=MOST_DAYS,
        help_text=help_text,
        widget=forms.NumberInput(attrs=_NUMBER),
    )


class RetentionForm(forms.Form):
    trajectory_days = _days("Trajectories (days)", "Since their import. Empty: kept.")
    sample_days = _days("Sampled requests (days)", "Of endpoints with sampling. Empty: kept.")
    export_days = _days(
        "Export files (days)", "Besides the limit of the installation. Empty: kept until then."
    )

    def rule(self) -> RetentionRule:
        """The rule that the form describes, not saved."""
        return RetentionRule(**self.cleaned_data)


class DeletionForm(forms.Form):
    name = forms.CharField(
        label="Name of the project",
        max_length=60,
        widget=forms.TextInput(attrs={"class": "form-control", "autocomplete": "off", "spellcheck": "false"}),
    )
