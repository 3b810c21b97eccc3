"""The form of an LLM connection."""

from dataclasses import fields
from typing import Any

from django import forms

from apps.core.storage.model_folders import known_names, name_of
from apps.llm.models import (
    ANSWER_TOKENS,
    LONGEST_URL,
    MAX_PICTURES,
    PICTURE_PIXELS,
    PICTURE_TOKENS,
    LLMConnection,
)
from apps.llm.services import (
    LEAST_PIXELS,
    MOST_ANSWER_TOKENS,
    MOST_CALLS,
    MOST_PICTURE_TOKENS,
    MOST_PICTURES,
    MOST_PIXELS,
    LLMConnectionSpec,
)

_TEXT = {"class": "form-control"}
_DEFAULTS = {
    "answer_tokens": ANSWER_TOKENS,
    "max_pictures": MAX_PICTURES,
    "picture_pixels": PICTURE_PIXELS,
    "picture_tokens": PICTURE_TOKENS,
}
_NUMBER = forms.NumberInput(attrs=_TEXT | {"step": "any", "min": "0"})


class LLMConnectionForm(forms.Form):
    """edited: an existing connection. Its key is never shown."""

    name = forms.CharField(max_length=100, widget=forms.TextInput(attrs=_TEXT))
    base_url = forms.URLField(
        required=False,
        label="Base URL",
        max_length=LONGEST_URL,
        assume_scheme="https",
        help_text="Base URL of an OpenAI-compatible server; usually ends in /v1.",
        widget=forms.URLInput(attrs=_TEXT | {"placeholder": "https://models.example.org/v1"}),
    )
    model = forms.CharField(
        required=False,
        max_length=200,
        help_text="Name of the model on the server.",
        widget=forms.TextInput(attrs=_TEXT),
    )
    key = forms.CharField(
        required=False,
        max_length=2000,
        label="API key",
        help_text="Stored encrypted and never shown again. Leave empty if the server needs none.",
        widget=forms.PasswordInput(attrs=_TEXT | {"autocomplete": "off"}),
    )
    folder = forms.CharField(
        required=False,
        max_length=LONGEST_URL,
        label="Model folder (instead of a server)",
        widget=forms.TextInput(attrs=_TEXT),
    )
    answer_tokens = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=MOST_ANSWER_TOKENS,
        label="Max output tokens",
        help_text=f"Default {ANSWER_TOKENS:,}.",
        widget=forms.NumberInput(attrs=_TEXT | {"placeholder": str(ANSWER_TOKENS)}),
    )
    calls_per_minute = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=MOST_CALLS,
        label="Max calls per minute",
        help_text="Leave empty for no limit.",
        widget=forms.NumberInput(attrs=_TEXT),
    )
    prompt_price = forms.DecimalField(
        required=False,
        min_value=0,
        max_digits=12,
        decimal_places=4,
        label="Input price per 1M tokens",
        help_text="In the currency of your bill.",
        widget=_NUMBER,
    )
    completion_price = forms.DecimalField(
        required=False,
        min_value=0,
        max_digits=12,
        decimal_places=4,
        label="Output price per 1M tokens",
        widget=_NUMBER,
    )
    monthly_limit = forms.DecimalField(
        required=False,
        min_value=0,
        max_digits=12,
        decimal_places=2,
        label="Monthly budget",
        help_text="A call that could exceed it is not made. Leave empty for no limit.",
        widget=_NUMBER,
    )

    reads_pictures = forms.BooleanField(
        required=False,
        label="Reads pictures",
        help_text="Judges send the pictures of trajectories to this model. Otherwise their answers say that pictures "
        "were not seen. The test of the connection asks about a picture.",
        widget=forms.CheckboxInput(attrs={"class": "form-check-input"}),
    )
    max_pictures = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=MOST_PICTURES,
        label="Pictures per call",
        help_text=f"Default {MAX_PICTURES}. Of more, the first, the last and others evenly between them are sent.",
        widget=forms.NumberInput(attrs=_TEXT | {"placeholder": str(MAX_PICTURES)}),
    )
    picture_pixels = forms.IntegerField(
        required=False,
        min_value=LEAST_PIXELS,
        max_value=MOST_PIXELS,
        label="Longer side of a picture",
        help_text=f"In pixels, default {PICTURE_PIXELS}. Larger pictures are scaled down.",
        widget=forms.NumberInput(attrs=_TEXT | {"placeholder": str(PICTURE_PIXELS)}),
    )
    picture_tokens = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=MOST_PICTURE_TOKENS,
        label="Tokens per picture",
        help_text=f"The most that one counts as, default {PICTURE_TOKENS:,}, by which the cost of a call is reserved. "
        "The test of the connection measures it.",
        widget=forms.NumberInput(attrs=_TEXT | {"placeholder": str(PICTURE_TOKENS)}),
    )

    def __init__(self, *args: Any, edited: LLMConnection | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields[
            "folder"
        ].help_text = (
            f"Available: {known_names()}. GPU workers read the folder, and nothing is sent to a server."
        )
        if edited is not None:
            self.initial = {field.name: getattr(edited, field.name) for field in fields(LLMConnectionSpec)}
            self.initial["folder"] = name_of(edited.folder)
            self.fields["key"].help_text = (
                "Leave empty to keep the stored key." if edited.key else "Leave empty to use no key."
            )

    @property
    def spec(self) -> LLMConnectionSpec:
        """Of a valid form."""
        values = {name: value for name, value in self.cleaned_data.items() if name != "key"}
        return LLMConnectionSpec(
            **values | {name: values[name] or default for name, default in _DEFAULTS.items()}
        )
