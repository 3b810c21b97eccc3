"""How a campaign chooses, as a form."""

from typing import Any

from django import forms

from apps.active_learning.models import SelectionPlan, Strategy
from apps.annotation.models import Campaign
from apps.core.forms import add_widget_classes
from apps.rewards.models import Endpoint
from apps.rewards.selectors import endpoints_of


class PlanForm(forms.Form):
    strategy = forms.ChoiceField(label="Ask first about", choices=Strategy.choices, widget=forms.RadioSelect)
    endpoint: "forms.ModelChoiceField[Endpoint]" = forms.ModelChoiceField(
        label="Looked at through",
        queryset=None,
        required=False,
        empty_label="the newest model of the project",
        help_text="What the endpoint serves, and the samples it keeps as what is really asked.",
    )
    every = forms.IntegerField(
        label="Rank again after",
        min_value=1,
        max_value=10_000,
        help_text="Judgements in this campaign. It also happens when items come, or a new model.",
    )
    wanted = forms.FloatField(
        label="Accuracy to be reached, percent",
        required=False,
        help_text="Above 50 and below 100; the page then estimates how many judgements that takes.",
    )

    def __init__(self, *args: Any, campaign: Campaign, plan: SelectionPlan | None, **kwargs: Any) -> None:
        shown = plan or SelectionPlan(campaign=campaign)
        initial = {
            "strategy": shown.strategy,
            "endpoint": shown.endpoint,
            "every": shown.every,
            "wanted": None if shown.wanted is None else round(100 * shown.wanted, 2),
        }
        super().__init__(*args, **kwargs | {"initial": initial})
        self.fields["endpoint"].queryset = endpoints_of(campaign.project)  # type: ignore[attr-defined]
        add_widget_classes(self)

    def clean_wanted(self) -> float | None:
        wanted = self.cleaned_data["wanted"]
        if wanted is not None and not 50 < wanted < 100:
            raise forms.ValidationError("Above 50 and below 100.")
        return None if wanted is None else float(wanted) / 100
