"""The form of a language model."""

from typing import Any

from django import forms

from apps.judges.models import LONGEST_URL, LanguageModel

_TEXT = {"class": "form-control"}


class LanguageModelForm(forms.Form):
    """of: the one that is changed, whose key is never shown."""

    name = forms.CharField(
        max_length=100, help_text="As people here call it.", widget=forms.TextInput(attrs=_TEXT)
    )
    base_url = forms.URLField(
        label="Address",
        max_length=LONGEST_URL,
        assume_scheme="https",
        help_text="The base URL of a server that speaks OpenAI's chat completions; it mostly ends in /v1.",
        widget=forms.URLInput(attrs=_TEXT | {"placeholder": "https://models.example.org/v1"}),
    )
    model = forms.CharField(
        max_length=200, help_text="As the server calls it.", widget=forms.TextInput(attrs=_TEXT)
    )
    key = forms.CharField(
        required=False,
        max_length=2000,
        help_text="Kept encrypted, and never shown again. Empty where the server wants none.",
        widget=forms.PasswordInput(attrs=_TEXT | {"autocomplete": "off"}),
    )

    def __init__(self, *args: Any, of: LanguageModel | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if of is not None:
            self.initial = {"name": of.name, "base_url": of.base_url, "model": of.model}
            self.fields["key"].help_text = (
                "Empty: the one it has stays." if of.key else "Empty: none, as now."
            )
