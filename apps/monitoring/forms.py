"""The rules of a monitor, as JSON."""

import json
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator

from apps.accounts.models import Project
from apps.annotation.models import Campaign
from apps.monitoring.asking import MOST, campaigns_for
from apps.monitoring.rules import parse_rules, rules_as_json
from apps.monitoring.selectors import rules_of
from apps.rewards.models import Endpoint
from workers.errors import RewardError
from workers.schema import parse_json

CONTROL = {"class": "form-control"}


class RulesForm(forms.Form):
    rules = forms.CharField(
        widget=forms.Textarea(attrs={"rows": 14, "spellcheck": "false", "class": "form-control mono"}),
        help_text="A list, as JSON. An empty one brings the default rules back.",
    )

    def __init__(self, endpoint: Endpoint, data: Any = None) -> None:
        lines = ",\n ".join(json.dumps(one) for one in rules_as_json(rules_of(endpoint)))
        super().__init__(data, initial={"rules": f"[{lines}]"})
        if self.is_bound and self.errors:
            self.fields["rules"].widget.attrs["class"] += " is-invalid"

    def clean_rules(self) -> list[dict[str, Any]]:
        try:
            return rules_as_json(parse_rules(parse_json(self.cleaned_data["rules"])))
        except RewardError as error:
            at = f"{error.pointer}: " if error.pointer else ""
            raise ValidationError(f"{at}{error.message}") from None


class AskForm(forms.Form):
    count = forms.IntegerField(
        label="Comparisons", min_value=1, max_value=MOST, initial=20, widget=forms.NumberInput(attrs=CONTROL)
    )
    campaign = forms.ModelChoiceField(
        Campaign.objects.none(),
        required=False,
        empty_label="The follow-up campaign of this endpoint",
        widget=forms.Select(attrs={"class": "form-select"}),
        help_text="They come first there, where it hands out by priority.",
    )

    def __init__(self, project: Project, data: Any = None) -> None:
        super().__init__(data)
        fitting: Any = self.fields["campaign"]
        keys = [one.pk for one in campaigns_for(project)]
        fitting.queryset = Campaign.objects.filter(pk__in=keys).order_by("-created_at")


_CHECKS = ("verified", "heads_only", "tries", "automatic")


class TurnForm(AskForm):
    """Once around. count: 0 goes on from what was judged already."""

    verified = forms.BooleanField(
        label="Learn from what its verifier said, too: answers it calls right against those it calls wrong",
        required=False,
    )
    online_every = forms.IntegerField(
        label="And again by itself, after so many verified samples",
        required=False,
        min_value=0,
        max_value=1_000_000,
        widget=forms.NumberInput(attrs=CONTROL),
        help_text="0: never. From the verifier alone, heads only, tried before it answers.",
    )
    heads_only = forms.BooleanField(
        label="Train the heads alone, on the model's own trunk: seconds rather than minutes",
        required=False,
        initial=True,
    )
    tries = forms.BooleanField(
        label="Try it in the shadow and as a canary before it answers everything",
        required=False,
        initial=True,
    )
    automatic = forms.BooleanField(label="Take every step by itself", required=False, initial=True)

    def __init__(self, endpoint: Endpoint, data: Any = None) -> None:
        super().__init__(endpoint.project, data)
        monitor = getattr(endpoint, "monitor", None)
        self.fields["online_every"].initial = monitor.online_every if monitor is not None else 0
        count: Any = self.fields["count"]
        count.min_value = 0
        count.widget.attrs["min"] = 0
        count.validators = [MinValueValidator(0), MaxValueValidator(MOST)]
        count.help_text = "About what it is unsure of; 0 goes on from what was judged."
        for name in _CHECKS:
            self.fields[name].widget.attrs["class"] = "form-check-input"

    def checks(self) -> list[forms.BoundField]:
        return [self[name] for name in _CHECKS]


class CloseForm(forms.Form):
    note = forms.CharField(
        label="What it was",
        required=False,
        max_length=2000,
        widget=forms.Textarea(attrs={"rows": 2, "class": "form-control"}),
    )
