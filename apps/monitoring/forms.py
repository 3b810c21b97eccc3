"""The rules of a monitor, as JSON, and the note of a closed alert."""

import json
from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from apps.monitoring.rules import parse_rules, rules_as_json
from apps.monitoring.selectors import endpoint_rules
from apps.rewards.models import Endpoint
from workers.errors import RewardError
from workers.schema import parse_json


class RulesForm(forms.Form):
    rules = forms.CharField(
        widget=forms.Textarea(attrs={"rows": 14, "spellcheck": "false", "class": "form-control mono"}),
        help_text="A JSON list. An empty list restores the default rules.",
    )

    def __init__(self, endpoint: Endpoint, data: Any = None) -> None:
        lines = ",\n ".join(json.dumps(rule) for rule in rules_as_json(endpoint_rules(endpoint)))
        super().__init__(data, initial={"rules": f"[{lines}]"})
        if self.is_bound and self.errors:
            self.fields["rules"].widget.attrs["class"] += " is-invalid"

    def clean_rules(self) -> list[dict[str, Any]]:
        try:
            return rules_as_json(parse_rules(parse_json(self.cleaned_data["rules"])))
        except RewardError as error:
            at = f"{error.pointer}: " if error.pointer else ""
            raise ValidationError(f"{at}{error.message}") from None


class CloseAlertForm(forms.Form):
    note = forms.CharField(
        label="Resolution note",
        required=False,
        max_length=2000,
        widget=forms.Textarea(attrs={"rows": 2, "class": "form-control"}),
    )
