"""The form of a webhook."""

from typing import Any

from django import forms

from apps.webhooks.models import LONGEST_URL, MessageFormat, WebhookEvent


class WebhookForm(forms.Form):
    url = forms.URLField(
        label="URL",
        max_length=LONGEST_URL,
        assume_scheme="https",
        widget=forms.URLInput(attrs={"class": "form-control", "placeholder": "https://example.org/hooks"}),
    )
    message_format = forms.ChoiceField(
        label="Format",
        choices=MessageFormat.choices,
        widget=forms.Select(attrs={"class": "form-select"}),
        help_text="A chat message has the names of jobs and campaigns and a link, no text of trajectories.",
    )
    events = forms.MultipleChoiceField(
        label="Events",
        choices=WebhookEvent.choices,
        initial=WebhookEvent.values,
        widget=forms.CheckboxSelectMultiple(attrs={"class": "form-check-input"}),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["message_format"].required = False
        if self.is_bound and self.errors.get("url"):
            self.fields["url"].widget.attrs["class"] += " is-invalid"
