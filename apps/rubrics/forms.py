"""The editor: the rubric's name, and a row of fields for each criterion."""

from typing import Any

from django import forms
from django.forms.formsets import DELETION_FIELD_NAME

from apps.rubrics.services import CriterionDraft
from apps.rubrics.yaml_documents import plain

_TEXT = {"class": "form-control"}


class RubricForm(forms.Form):
    name = forms.CharField(max_length=200, widget=forms.TextInput(attrs=_TEXT))
    about = forms.CharField(required=False, widget=forms.Textarea(attrs=_TEXT | {"rows": 2}), label="Purpose")


class CriterionForm(forms.Form):
    name = forms.CharField(max_length=200, widget=forms.TextInput(attrs=_TEXT))
    definition = forms.CharField(required=False, widget=forms.Textarea(attrs=_TEXT | {"rows": 2}))
    scale_low = forms.FloatField(label="Lowest score", initial=1, widget=forms.NumberInput(attrs=_TEXT))
    scale_high = forms.FloatField(label="Highest score", initial=5, widget=forms.NumberInput(attrs=_TEXT))
    good_example = forms.CharField(
        required=False, label="Good example", widget=forms.Textarea(attrs=_TEXT | {"rows": 1})
    )
    bad_example = forms.CharField(
        required=False, label="Bad example", widget=forms.Textarea(attrs=_TEXT | {"rows": 1})
    )
    weight = forms.FloatField(initial=1, widget=forms.NumberInput(attrs=_TEXT | {"step": "any"}))
    rank = forms.IntegerField(
        initial=1, min_value=1, help_text="1 is the most important.", widget=forms.NumberInput(attrs=_TEXT)
    )

    def draft(self) -> CriterionDraft:
        said = {name: self.cleaned_data[name] for name in CriterionForm.base_fields}
        return CriterionDraft(**said)


class _Criteria(forms.BaseFormSet):
    def add_fields(self, form: forms.Form, index: int | None) -> None:
        super().add_fields(form, index)
        form.fields[DELETION_FIELD_NAME].widget.attrs["class"] = "form-check-input"

    def drafts(self) -> list[CriterionDraft]:
        """In the order of the page, without those that are taken out or empty."""
        known = self.initial_form_count()
        kept = [form for place, form in enumerate(self.forms) if place < known or form.has_changed()]
        return [form.draft() for form in kept if not form.cleaned_data.get(DELETION_FIELD_NAME)]


def criteria_forms(
    data: Any = None, drafts: list[CriterionDraft] | None = None, *, extra: int = 1
) -> _Criteria:
    made = forms.formset_factory(CriterionForm, formset=_Criteria, extra=extra, can_delete=True, max_num=30)
    initial = [
        {name: plain(getattr(draft, name)) for name in CriterionForm.base_fields} for draft in drafts or ()
    ]
    return made(data, initial=initial, prefix="criteria")  # type: ignore[return-value]


class YamlForm(forms.Form):
    text = forms.CharField(
        label="YAML",
        widget=forms.Textarea(
            attrs=_TEXT | {"rows": 10, "class": "form-control mono", "spellcheck": "false"}
        ),
        help_text="Keys: name, about, criteria. Keys of a criterion: name, definition, scale, good, bad, weight, rank.",
    )
