"""The form of an LLM connection."""

from dataclasses import fields
from typing import Any

from django import forms

from apps.core.storage.model_folders import known_names, name_of
from apps.llm.models import ANSWER_TOKENS, LONGEST_URL, LLMConnection
from apps.llm.services import MOST_ANSWER_TOKENS, MOST_CALLS, LLMConnectionSpec

_TEXT = {"class": "form-control"}
_NUMBER = forms.NumberInput(attrs=_TEXT | {"step": "any", "min": "0"})


class LLMConnectionForm(forms.Form):
    """of: the one that is changed, whose key is never shown."""

    name = forms.CharField(
        max_length=100, help_text="As people here call it.", widget=forms.TextInput(attrs=_TEXT)
    )
    base_url = forms.URLField(
        required=False,
        label="Address",
        max_length=LONGEST_URL,
        assume_scheme="https",
        help_text="The base URL of a server that speaks OpenAI's chat completions; it mostly ends in /v1.",
        widget=forms.URLInput(attrs=_TEXT | {"placeholder": "https://models.example.org/v1"}),
    )
    model = forms.CharField(
        required=False,
        max_length=200,
        help_text="As the server calls it.",
        widget=forms.TextInput(attrs=_TEXT),
    )
    key = forms.CharField(
        required=False,
        max_length=2000,
        help_text="Kept encrypted, and never shown again. Empty where the server wants none.",
        widget=forms.PasswordInput(attrs=_TEXT | {"autocomplete": "off"}),
    )
    folder = forms.CharField(
        required=False,
        max_length=LONGEST_URL,
        label="Or a model folder",
        widget=forms.TextInput(attrs=_TEXT),
    )
    answer_tokens = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=MOST_ANSWER_TOKENS,
        label="Tokens of an answer",
        help_text=f"At most. Empty: {ANSWER_TOKENS:,}.",
        widget=forms.NumberInput(attrs=_TEXT),
    )
    calls_per_minute = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=MOST_CALLS,
        help_text="At most. Empty: no limit.",
        widget=forms.NumberInput(attrs=_TEXT),
    )
    prompt_price = forms.DecimalField(
        required=False,
        min_value=0,
        max_digits=12,
        decimal_places=4,
        label="Price of a million tokens asked",
        help_text="In the currency you are billed in.",
        widget=_NUMBER,
    )
    completion_price = forms.DecimalField(
        required=False,
        min_value=0,
        max_digits=12,
        decimal_places=4,
        label="Price of a million tokens answered",
        widget=_NUMBER,
    )
    monthly_limit = forms.DecimalField(
        required=False,
        min_value=0,
        max_digits=12,
        decimal_places=2,
        label="Limit of a month",
        help_text="No call is made that could pass it. Empty: no limit.",
        widget=_NUMBER,
    )

    def __init__(self, *args: Any, of: LLMConnection | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields[
            "folder"
        ].help_text = f"By its name: {known_names()}. GPU workers read it, and nothing is sent anywhere."
        if of is not None:
            self.initial = {one.name: getattr(of, one.name) for one in fields(LLMConnectionSpec)}
            self.initial["folder"] = name_of(of.folder)
            self.fields["key"].help_text = (
                "Empty: the one it has stays." if of.key else "Empty: none, as now."
            )

    @property
    def spec(self) -> LLMConnectionSpec:
        """Of a valid form."""
        given = {name: value for name, value in self.cleaned_data.items() if name != "key"}
        return LLMConnectionSpec(**given | {"answer_tokens": given["answer_tokens"] or ANSWER_TOKENS})
