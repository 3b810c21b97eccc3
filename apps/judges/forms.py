"""Forms of judges and their runs."""

from typing import Any

from django import forms
from django.db.models import QuerySet

from apps.accounts.models import Project
from apps.annotation.models import Campaign
from apps.judges.models import Judge
from apps.judges.selectors import TRIED
from apps.judges.services import JudgeSpec
from apps.judges.services.judges import LONGEST_GUIDELINES, MOST_SAMPLES, PROMPTS
from apps.llm.models import LLMConnection
from apps.llm.selectors import list_llm_connections
from apps.rubrics.models import Rubric

_TEXT, _SELECT = {"class": "form-control"}, {"class": "form-select"}


class JudgeForm(forms.Form):
    name = forms.CharField(max_length=100, widget=forms.TextInput(attrs=_TEXT))
    llm_connection: "forms.ModelChoiceField[LLMConnection]" = forms.ModelChoiceField(
        queryset=LLMConnection.objects.none(), empty_label=None, widget=forms.Select(attrs=_SELECT)
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
        _choose(self, "llm_connection", list_llm_connections(project))
        _choose(self, "rubric", Rubric.objects.filter(project=project).order_by("name", "-version"))

    @property
    def spec(self) -> JudgeSpec:
        """Of a valid form."""
        given = self.cleaned_data
        return JudgeSpec(**given | {"samples": given["samples"] or 1, "prompt": int(given["prompt"])})


class JudgeRunForm(forms.Form):
    """What a judge is to go through."""

    campaign: "forms.ModelChoiceField[Campaign]" = forms.ModelChoiceField(
        queryset=Campaign.objects.none(), empty_label=None, widget=forms.Select(attrs=_SELECT)
    )
    max_items = forms.IntegerField(
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
    saves_annotations = forms.BooleanField(
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
