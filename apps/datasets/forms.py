"""Forms of datasets, with the widgets our look expects."""

from typing import Any, get_args

from django import forms

from apps.accounts.models import Project
from apps.annotation.feedback.records import KINDS
from apps.annotation.models import Annotator, Campaign
from workers.schema import Origin

_CONTROL = {"class": "form-control"}
_SELECT = {"class": "form-select"}
_MOST_LISTED = 500
_KIND_LABELS = {"pairwise": "comparisons", "comment": "comments", "outcome": "outcomes of the trajectories"}


class SnapshotForm(forms.Form):
    """Which feedback to freeze. Nothing chosen in a list means all of it."""

    name = forms.SlugField(
        max_length=60,
        help_text="A name that exists already gets its next version.",
        widget=forms.TextInput(attrs=_CONTROL),
    )
    campaigns = forms.MultipleChoiceField(required=False, widget=forms.SelectMultiple(attrs=_SELECT))
    kinds = forms.MultipleChoiceField(
        required=False,
        choices=[(kind, _KIND_LABELS.get(kind, kind)) for kind in KINDS],
        widget=forms.SelectMultiple(attrs=_SELECT | {"size": len(KINDS)}),
    )
    origins = forms.MultipleChoiceField(
        required=False,
        choices=[(origin, origin) for origin in get_args(Origin)],
        help_text="Who judged: people here, language models, simulations, or people elsewhere.",
        widget=forms.SelectMultiple(attrs=_SELECT | {"size": 4}),
    )
    annotators = forms.MultipleChoiceField(required=False, widget=forms.SelectMultiple(attrs=_SELECT))
    test_tasks = forms.CharField(
        required=False,
        label="Test tasks",
        help_text="One task id a line: exactly these are held out. Without them a tenth of the tasks is, by a hash.",
        widget=forms.Textarea(
            attrs=_CONTROL | {"rows": 4, "class": "form-control mono", "spellcheck": "false"}
        ),
    )
    seed = forms.IntegerField(
        initial=0,
        min_value=0,
        max_value=2**31 - 1,
        help_text="Decides which tasks go to which split; the same seed splits the same way.",
        widget=forms.NumberInput(attrs=_CONTROL),
    )

    def __init__(self, *args: Any, project: Project, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        named = {
            "campaigns": Campaign.objects.filter(project=project),
            "annotators": Annotator.objects.filter(project=project),
        }
        for field, rows in named.items():
            self._offer(field, sorted({str(row) for row in rows[:_MOST_LISTED]}))

    def _offer(self, name: str, values: list[str]) -> None:
        field = self.fields[name]
        assert isinstance(field, forms.MultipleChoiceField)
        field.choices = [(value, value) for value in values]
        field.widget.attrs["size"] = max(2, min(6, len(values)))

    @property
    def filters(self) -> dict[str, Any]:
        return {name: self.cleaned_data[name] for name in ("campaigns", "kinds", "origins", "annotators")}

    @property
    def test_task_ids(self) -> list[str] | None:
        found = [line.strip() for line in self.cleaned_data["test_tasks"].splitlines() if line.strip()]
        return found or None
