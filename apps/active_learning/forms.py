"""The active learning settings of a campaign."""

from typing import Any

from django import forms

from apps.active_learning.models import SelectionPlan, Strategy
from apps.annotation.models import Campaign
from apps.core.forms import add_widget_classes
from apps.rewards.models import Endpoint
from apps.rewards.selectors import endpoints_of


class PlanForm(forms.Form):
    strategy = forms.ChoiceField(label="Strategy", choices=Strategy.choices, widget=forms.RadioSelect)
    endpoint: "forms.ModelChoiceField[Endpoint]" = forms.ModelChoiceField(
        label="Endpoint",
        queryset=None,
        required=False,
        empty_label="newest model of the project",
        help_text="Its model ranks the items; its samples stand for real traffic.",
    )
    annotations_between = forms.IntegerField(
        label="Annotations between rankings",
        min_value=1,
        max_value=10_000,
        help_text="Items are also ranked when items are added or a new model is trained.",
    )
    target_accuracy = forms.FloatField(
        label="Target accuracy, percent",
        required=False,
        help_text="Above 50 and below 100. The page estimates how many annotations it takes.",
    )

    def __init__(self, *args: Any, campaign: Campaign, plan: SelectionPlan | None, **kwargs: Any) -> None:
        shown = plan or SelectionPlan(campaign=campaign)
        initial = {
            "strategy": shown.strategy,
            "endpoint": shown.endpoint,
            "annotations_between": shown.annotations_between,
            "target_accuracy": None
            if shown.target_accuracy is None
            else round(100 * shown.target_accuracy, 2),
        }
        super().__init__(*args, **kwargs | {"initial": initial})
        self.fields["endpoint"].queryset = endpoints_of(campaign.project)  # type: ignore[attr-defined]
        add_widget_classes(self)

    def clean_target_accuracy(self) -> float | None:
        percent = self.cleaned_data["target_accuracy"]
        if percent is not None and not 50 < percent < 100:
            raise forms.ValidationError("Enter a number above 50 and below 100.")
        return None if percent is None else float(percent) / 100
