"""A filter of trajectories in a form: text as the address of their list has it, and with a script, fields."""

from typing import Any

from django import forms
from django.urls import reverse

from apps.accounts.models import Project
from apps.trajectories.filters import LONGEST_QUERY

FILTER_HELP = "As in the address of the trajectory list, such as agent=desk&success=no; empty for all."


class FilterField(forms.CharField):
    """static/js/filter-builder.js makes fields, saved views and a count of it; the text is what is sent.

    The form calls `offer_filter_builder`. Who uses the text reads it with `parse_filter`.
    """

    def __init__(self, *, label: str = "Filter", help_text: str = FILTER_HELP, **options: Any) -> None:
        attrs = {"class": "form-control mono", "spellcheck": "false", "autocomplete": "off"}
        super().__init__(
            required=False,
            max_length=LONGEST_QUERY,
            label=label,
            help_text=help_text,
            widget=forms.TextInput(attrs=attrs),
            **options,
        )


def offer_filter_builder(form: forms.BaseForm, project: Project) -> None:
    """Of every filter in the form."""
    for field in form.fields.values():
        if isinstance(field, FilterField):
            field.widget.attrs["data-filter-url"] = reverse(
                "trajectories:filter-builder", args=[project.slug]
            )


class FilterChoiceForm(forms.Form):
    """The filter of a page whose address has it: sent as one text, then written as conditions."""

    filter = FilterField(label="Trajectories")

    def __init__(self, query: str, project: Project) -> None:
        super().__init__(auto_id="chosen_%s", initial={"filter": query})
        offer_filter_builder(self, project)
