"""Forms of language models and judges."""

from dataclasses import fields
from typing import Any

from django import forms
from django.db.models import QuerySet

from apps.accounts.models import Project
from apps.annotation.models import Campaign
from apps.core.storage.model_folders import known_names, name_of
from apps.judges.models import ANSWER_TOKENS, LONGEST_URL, Judge, LanguageModel
from apps.judges.selectors import TRIED, language_models_of
from apps.judges.services import MOST_ANSWER_TOKENS, MOST_CALLS, JudgeSpec, LanguageModelSpec
from apps.judges.services.judges import LONGEST_GUIDELINES, MOST_SAMPLES, PROMPTS
from apps.rubrics.models import Rubric

_TEXT, _SELECT = {"class": "form-control"}, {"class": "form-select"}


_NUMBER = forms.NumberInput(attrs=_TEXT | {"step": "any", "min": "0"})


class LanguageModelForm(forms.Form):
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

    def __init__(self, *args: Any, of: LanguageModel | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields[
            "folder"
        ].help_text = f"By its name: {known_names()}. GPU workers read it, and nothing is sent anywhere."
        if of is not None:
            self.initial = {one.name: getattr(of, one.name) for one in fields(LanguageModelSpec)}
            self.initial["folder"] = name_of(of.folder)
            self.fields["key"].help_text = (
                "Empty: the one it has stays." if of.key else "Empty: none, as now."
            )

    @property
    def spec(self) -> LanguageModelSpec:
        """Of a valid form."""
        given = {name: value for name, value in self.cleaned_data.items() if name != "key"}
        return LanguageModelSpec(**given | {"answer_tokens": given["answer_tokens"] or ANSWER_TOKENS})


class JudgeForm(forms.Form):
    name = forms.CharField(max_length=100, widget=forms.TextInput(attrs=_TEXT))
    language_model: "forms.ModelChoiceField[LanguageModel]" = forms.ModelChoiceField(
        queryset=LanguageModel.objects.none(), empty_label=None, widget=forms.Select(attrs=_SELECT)
    )
    mode = forms.ChoiceField(choices=Judge.Mode.choices, widget=forms.Select(attrs=_SELECT))
    rubric: "forms.ModelChoiceField[Rubric]" = forms.ModelChoiceField(
        queryset=Rubric.objects.none(),
        required=False,
        empty_label="none: overall only",
        help_text="Scores need one. To be held against people, the one that they judge by.",
        widget=forms.Select(attrs=_SELECT),
    )
    guidelines = forms.CharField(
        required=False,
        max_length=LONGEST_GUIDELINES,
        help_text="What people are told, as far as a judge can go by it.",
        widget=forms.Textarea(attrs=_TEXT | {"rows": 4}),
    )
    samples = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=MOST_SAMPLES,
        help_text="Answers that are averaged. Empty: 1, the likeliest. Each costs a call, two where runs are compared.",
        widget=forms.NumberInput(attrs=_TEXT),
    )
    prompt = forms.TypedChoiceField(
        choices=[(version, f"{version}: {told}") for version, told in PROMPTS.items()],
        coerce=int,
        required=False,
        empty_value="1",
        widget=forms.Select(attrs=_SELECT),
    )

    def __init__(self, *args: Any, project: Project, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _choose(self, "language_model", language_models_of(project))
        _choose(self, "rubric", Rubric.objects.filter(project=project).order_by("name", "-version"))

    @property
    def spec(self) -> JudgeSpec:
        """Of a valid form."""
        given = self.cleaned_data
        return JudgeSpec(**given | {"samples": given["samples"] or 1, "prompt": int(given["prompt"])})


class JudgingForm(forms.Form):
    """What a judge is to go through."""

    campaign: "forms.ModelChoiceField[Campaign]" = forms.ModelChoiceField(
        queryset=Campaign.objects.none(), empty_label=None, widget=forms.Select(attrs=_SELECT)
    )
    most = forms.IntegerField(
        required=False,
        min_value=1,
        label="Items at most",
        help_text="What people judged comes first. Empty: all.",
        widget=forms.NumberInput(attrs=_TEXT),
    )
    prompt = forms.TypedChoiceField(
        choices=[
            ("", "the judge's own"),
            *((version, f"{version}: {told}") for version, told in PROMPTS.items()),
        ],
        coerce=int,
        required=False,
        empty_value=None,
        widget=forms.Select(attrs=_SELECT),
    )
    hands_in = forms.BooleanField(
        required=False,
        label="Hand it in",
        help_text="Its answers become judgements of the campaign, marked as a judge's.",
        widget=forms.CheckboxInput(attrs={"class": "form-check-input"}),
    )

    def __init__(self, *args: Any, project: Project, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _choose(self, "campaign", Campaign.objects.filter(project=project).order_by("name"))


class TrialForm(forms.Form):
    """Which runs; without any, those that people judged last."""

    runs = forms.CharField(
        required=False,
        max_length=200,
        label="Runs",
        help_text=f"Their numbers, up to {TRIED}. Empty: some that are there.",
        widget=forms.TextInput(attrs=_TEXT | {"placeholder": "12, 15, 31"}),
    )

    def clean_runs(self) -> list[int]:
        parts = self.cleaned_data["runs"].replace(",", " ").split()
        if not all(part.isdecimal() and len(part) < 19 for part in parts):
            raise forms.ValidationError("Give the numbers of runs, with commas between.")
        return [int(part) for part in parts]


def _choose(form: forms.Form, name: str, rows: "QuerySet[Any]") -> None:
    field = form.fields[name]
    assert isinstance(field, forms.ModelChoiceField)
    field.queryset = rows
