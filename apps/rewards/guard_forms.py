"""Forms of a guard: the settings of its log, and the answer about a decision."""

from typing import Any

from django import forms

from apps.core.forms import add_widget_classes
from apps.rewards.guard_log import MOST_CHARACTERS
from apps.rewards.models import Endpoint
from apps.rewards.services import MOST_SAMPLE_DAYS


class GuardLogForm(forms.Form):
    review_share = forms.FloatField(
        label="Reviewed share of allowed and denied actions, in per cent",
        min_value=0,
        max_value=100,
        help_text="Decisions that ask a person are all reviewed.",
    )
    days = forms.IntegerField(label="Retention, in days", min_value=1, max_value=MOST_SAMPLE_DAYS)
    characters = forms.IntegerField(
        label="Characters of an excerpt",
        min_value=0,
        max_value=MOST_CHARACTERS,
        help_text="Of what was before the action, and of the action. Keys, addresses and numbers are removed first, "
        "and what the custom redaction patterns of samples match. 0 stores no text and deletes stored text.",
    )

    def __init__(self, endpoint: Endpoint, data: Any = None) -> None:
        initial = {
            "review_share": round(100 * endpoint.guard_review_share, 6),
            "days": endpoint.guard_days,
            "characters": endpoint.guard_characters,
        }
        super().__init__(data, initial=initial)
        add_widget_classes(self)

    def settings(self) -> dict[str, Any]:
        """As `keep_guard_log` takes them."""
        return self.cleaned_data | {"review_share": self.cleaned_data["review_share"] / 100}


class GuardAnswerForm(forms.Form):
    answer = forms.ChoiceField(
        label="Was this decision right?",
        choices=[("right", "Right"), ("wrong", "Wrong")],
        widget=forms.RadioSelect,
    )
    note = forms.CharField(required=False, max_length=2000, widget=forms.Textarea(attrs={"rows": 2}))

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        add_widget_classes(self)

    def answer_fields(self) -> dict[str, Any]:
        """As `answer_decision` takes them."""
        return {"is_right": self.cleaned_data["answer"] == "right", "note": self.cleaned_data["note"]}
