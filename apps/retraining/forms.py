"""Requests for annotations, and the options of a retraining cycle."""

from typing import Any

from django import forms
from django.core.validators import MaxValueValidator, MinValueValidator

from apps.accounts.models import Project
from apps.annotation.models import Campaign
from apps.retraining.follow_up import MAX_COMPARISONS, follow_up_campaigns
from apps.rewards.models import Endpoint

_CONTROL = {"class": "form-control"}


class FollowUpForm(forms.Form):
    count = forms.IntegerField(
        label="Comparisons",
        min_value=1,
        max_value=MAX_COMPARISONS,
        initial=20,
        widget=forms.NumberInput(attrs=_CONTROL),
    )
    campaign = forms.ModelChoiceField(
        Campaign.objects.none(),
        required=False,
        empty_label="The follow-up campaign of this endpoint",
        widget=forms.Select(attrs={"class": "form-select"}),
        help_text="The comparisons come first in a campaign that is ordered by priority.",
    )

    def __init__(self, project: Project, data: Any = None) -> None:
        super().__init__(data)
        campaign_field: Any = self.fields["campaign"]
        keys = [campaign.pk for campaign in follow_up_campaigns(project)]
        campaign_field.queryset = Campaign.objects.filter(pk__in=keys).order_by("-created_at")


_CHECKBOXES = ("verified", "heads_only", "staged_release", "automatic")


class RetrainingForm(FollowUpForm):
    """count: 0 uses the annotations that exist."""

    verified = forms.BooleanField(
        label="Add comparisons from the verifier: answers it accepts against answers it rejects",
        required=False,
    )
    retrain_after = forms.IntegerField(
        label="Repeat every N verified samples",
        required=False,
        min_value=0,
        max_value=1_000_000,
        widget=forms.NumberInput(attrs=_CONTROL),
        help_text="0: never. Uses the verifier's comparisons only, trains heads only (linear, hybrid and generative "
        "models whole), and releases in stages.",
    )
    heads_only = forms.BooleanField(
        label="Train heads only (frozen backbone): seconds instead of minutes; linear, hybrid and generative models "
        "are always trained whole",
        required=False,
        initial=True,
    )
    staged_release = forms.BooleanField(
        label="Shadow and canary before promotion", required=False, initial=True
    )
    automatic = forms.BooleanField(
        label="Run automatically, without confirming each stage", required=False, initial=True
    )

    def __init__(self, endpoint: Endpoint, data: Any = None) -> None:
        super().__init__(endpoint.project, data)
        monitor = getattr(endpoint, "monitor", None)
        self.fields["retrain_after"].initial = monitor.retrain_after if monitor is not None else 0
        count: Any = self.fields["count"]
        count.min_value = 0
        count.widget.attrs["min"] = 0
        count.validators = [MinValueValidator(0), MaxValueValidator(MAX_COMPARISONS)]
        count.help_text = (
            "About trajectories that the model is uncertain of. 0: use the annotations that exist."
        )
        for name in _CHECKBOXES:
            self.fields[name].widget.attrs["class"] = "form-check-input"

    def checkboxes(self) -> list[forms.BoundField]:
        return [self[name] for name in _CHECKBOXES]
