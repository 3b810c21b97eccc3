"""The form of a bulk job."""

from typing import Any

from django import forms

from apps.accounts.models import Project
from apps.bulk.models import BulkJob
from apps.judges.models import Judge
from apps.metrics.models import Induction
from apps.rewards.models import Endpoint
from apps.training.models import RewardModel
from apps.trajectories.filter_field import FilterField, offer_filter_builder

_CONTROL, _SELECT, _CHECK = ({"class": name} for name in ("form-control", "form-select", "form-check-input"))


_ENGINES = {
    "score": "model",
    "embed": "model",
    "judge": "judge",
    "induce": "induction",
    "endpoint": "endpoint",
}
_ARTICLES = {"model": "a", "judge": "a", "induction": "an", "endpoint": "an"}


class BulkJobForm(forms.Form):
    """Has the engines of all works; touchstone.css shows the one that the chosen work needs."""

    engines = tuple(_ARTICLES)

    work = forms.ChoiceField(choices=BulkJob.Work.choices, widget=forms.Select(attrs=_SELECT))
    model = forms.ModelChoiceField(
        RewardModel.objects.none(),
        required=False,
        widget=forms.Select(attrs=_SELECT),
    )
    judge = forms.ModelChoiceField(
        Judge.objects.none(),
        required=False,
        help_text="A judge that scores single trajectories.",
        widget=forms.Select(attrs=_SELECT),
    )
    induction = forms.ModelChoiceField(
        Induction.objects.none(),
        required=False,
        help_text="An induction by the embedded engine.",
        widget=forms.Select(attrs=_SELECT),
    )
    endpoint = forms.ModelChoiceField(
        Endpoint.objects.none(),
        required=False,
        help_text="With its components and transforms, as it serves them now.",
        widget=forms.Select(attrs=_SELECT),
    )
    with_steps = forms.BooleanField(
        required=False,
        label="Keep step rewards",
        help_text="For scores by a reward model or an endpoint. The results take more space.",
        widget=forms.CheckboxInput(attrs=_CHECK),
    )
    filter = FilterField()

    def __init__(self, *args: Any, project: Project, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        models = RewardModel.objects.filter(project=project, deleted_at=None).select_related("project")
        judges = Judge.objects.filter(project=project, mode=Judge.Mode.SCORE)
        inductions = Induction.objects.filter(
            project=project, engine=Induction.Engine.EMBEDDED, metrics__isnull=False
        ).distinct()
        for name, rows in (
            ("model", models.order_by("-pk")),
            ("judge", judges),
            ("induction", inductions.order_by("-pk")),
            ("endpoint", Endpoint.objects.filter(project=project, active__isnull=False).order_by("name")),
        ):
            field = self.fields[name]
            assert isinstance(field, forms.ModelChoiceField)
            field.queryset = rows
            field.empty_label = f"Choose {_ARTICLES[name]} {name}"
            if len(only := list(rows[:2])) == 1:
                field.initial = only[0].pk
        offer_filter_builder(self, project)
        self.order_fields(["work", *_ARTICLES, "with_steps", "filter"])

    def clean(self) -> dict[str, Any]:
        """Without the engines of other works, whose fields are on the form too."""
        values = super().clean() or {}
        own = _ENGINES.get(values.get("work", ""))
        return values | dict.fromkeys({*_ENGINES.values()} - {own})
