"""Forms of inductions and metrics."""

from typing import Any

from django import forms

from apps.accounts.models import Project
from apps.annotation.models import Campaign
from apps.llm.models import LLMConnection
from apps.llm.selectors import list_llm_connections
from apps.metrics.models import Metric
from apps.metrics.selectors import active_metrics

_TEXT, _SELECT = {"class": "form-control"}, {"class": "form-select"}


class InductionForm(forms.Form):
    campaign: "forms.ModelChoiceField[Campaign]" = forms.ModelChoiceField(
        queryset=Campaign.objects.none(),
        required=False,
        label="Comments of",
        empty_label="All campaigns",
        widget=forms.Select(attrs=_SELECT),
    )
    llm_connection: "forms.ModelChoiceField[LLMConnection]" = forms.ModelChoiceField(
        queryset=LLMConnection.objects.none(),
        required=False,
        label="Engine",
        empty_label="Embedded engine",
        widget=forms.Select(attrs=_SELECT),
    )
    seed = forms.IntegerField(
        required=False,
        min_value=0,
        max_value=2**31 - 1,
        help_text="Seed for the held-out split (default 0).",
        widget=forms.NumberInput(attrs=_TEXT | {"placeholder": "0"}),
    )

    def __init__(self, *args: Any, project: Project, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["campaign"]
        assert isinstance(field, forms.ModelChoiceField)
        field.queryset = Campaign.objects.filter(project=project).order_by("name")
        field = self.fields["llm_connection"]
        assert isinstance(field, forms.ModelChoiceField)
        field.queryset = list_llm_connections(project)


class MetricEditForm(forms.Form):
    name = forms.CharField(max_length=200, widget=forms.TextInput(attrs=_TEXT))
    definition = forms.CharField(
        required=False,
        max_length=2000,
        help_text="Leave empty to define it by its examples.",
        widget=forms.Textarea(attrs=_TEXT | {"rows": 3}),
    )


class MetricMergeForm(forms.Form):
    into: "forms.ModelChoiceField[Metric]" = forms.ModelChoiceField(
        queryset=Metric.objects.none(), label="Merge into", widget=forms.Select(attrs=_SELECT)
    )

    def __init__(self, *args: Any, metric: Metric, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["into"]
        assert isinstance(field, forms.ModelChoiceField)
        field.queryset = active_metrics(metric.induction).exclude(pk=metric.pk)


class MetricSplitForm(forms.Form):
    name = forms.CharField(
        max_length=200, label="Name of the new metric", widget=forms.TextInput(attrs=_TEXT)
    )
    aspects = forms.TypedMultipleChoiceField(coerce=int, widget=forms.MultipleHiddenInput)

    def __init__(self, *args: Any, metric: Metric, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["aspects"]
        assert isinstance(field, forms.TypedMultipleChoiceField)
        field.choices = [(pk, pk) for pk in metric.aspects.values_list("pk", flat=True)]


class InductionRubricForm(forms.Form):
    name = forms.CharField(
        max_length=200, label="Rubric name", initial="Extracted metrics", widget=forms.TextInput(attrs=_TEXT)
    )
