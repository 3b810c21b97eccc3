"""The form of a reward study."""

from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from apps.accounts.models import Project
from apps.annotation.models import Campaign
from apps.core.forms import add_widget_classes
from apps.core.jobs.job_queue import JobState
from apps.datasets.models import DatasetVersion
from apps.reward_studies.services import DEFAULT_SAMPLE, MAX_SAMPLE, StudyOptions
from apps.rewards.models import Endpoint
from apps.trajectories.filter_field import FilterField, offer_filter_builder
from workers.errors import RewardError
from workers.schema import parse_json
from workers.schema.decode import require_object

WEIGHT_FIELDS = ("feedback", "penalty", "allow_negative")
_SOURCES = ("filter", "dataset", "campaign")


class RewardStudyForm(forms.Form):
    """With the fields of both kinds; touchstone.css shows those of the chosen one."""

    kind = forms.ChoiceField(
        label="Study",
        choices=[
            ("weights", "Fit weights: what each component should weigh, by feedback"),
            ("analysis", "Analyse the reward: what it is made of, and what it rewards by mistake"),
        ],
    )
    dataset = forms.ModelChoiceField(
        DatasetVersion.objects.none(), required=False, label="Dataset version", empty_label="none"
    )
    campaign = forms.ModelChoiceField(
        Campaign.objects.none(), required=False, to_field_name="name", empty_label="none"
    )
    filter = FilterField(
        help_text="Where no dataset version or campaign is chosen: stored trajectories, as in the address of the "
        "trajectory list, such as agent=desk&success=no; empty for all. Weights are then fitted to their outcomes.",
    )
    sample = forms.IntegerField(
        min_value=1,
        max_value=MAX_SAMPLE,
        initial=DEFAULT_SAMPLE,
        label="Trajectories at most",
        help_text="Each is scored once, and five times more with probes. Where there are more, whole tasks are drawn "
        "at random. A judge in the spec is called for every score.",
    )
    feedback = forms.ChoiceField(
        label="Fit to",
        choices=[
            ("auto", "What there is most of"),
            ("comparisons", "Comparisons and rankings"),
            ("ratings", "Ratings"),
            ("outcomes", "Outcomes: success or failure"),
            ("policy", "The outcome of a policy that maximises the reward"),
        ],
        initial="auto",
    )
    penalty = forms.ChoiceField(
        choices=[
            ("l1", "L1: components that do not help are left out"),
            ("l2", "L2: weights are kept small"),
        ],
        initial="l1",
    )
    allow_negative = forms.BooleanField(
        required=False,
        label="Allow negative weights",
        help_text="Turns a component round that pulls against the feedback, instead of leaving it out.",
    )
    probes = forms.BooleanField(
        required=False,
        initial=True,
        label="Hacking probes",
        help_text="Scores changed copies too: repeated, padded, flattering, empty, and copied from the task.",
    )
    endpoint = forms.CharField(required=False, widget=forms.HiddenInput)
    spec = forms.CharField(
        widget=forms.Textarea(attrs={"rows": 12, "spellcheck": "false"}),
        help_text="Components and transforms, as JSON. Components of weight 0 keep it.",
    )

    def __init__(self, *args: Any, project: Project, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        datasets, campaigns, endpoints = (
            DatasetVersion.objects.filter(project=project, state=JobState.SUCCEEDED, withdrawn_at=None),
            Campaign.objects.filter(project=project),
            Endpoint.objects.filter(project=project),
        )
        self._endpoints = endpoints
        for name, rows in (("dataset", datasets.order_by("-pk")), ("campaign", campaigns.order_by("name"))):
            field: Any = self.fields[name]
            field.queryset = rows
        field = self.fields["dataset"]
        field.label_from_instance = lambda version: version.short_name
        offer_filter_builder(self, project)
        add_widget_classes(self)
        self.fields["spec"].widget.attrs["class"] += " mono"

    def clean_spec(self) -> dict[str, Any]:
        try:
            return require_object(parse_json(self.cleaned_data["spec"]))
        except RewardError as error:
            raise ValidationError(error.message) from None

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or {}
        if sum(bool(data.get(name)) for name in _SOURCES) > 1:
            self.add_error("filter", "Choose one of dataset version, campaign and filter.")
        return data

    def arguments(self) -> dict[str, Any]:
        """Of `start_reward_study`."""
        data = self.cleaned_data
        return {
            "kind": data["kind"],
            "spec": data["spec"],
            "endpoint": self._endpoints.filter(name=data["endpoint"]).first(),
            "filter": data["filter"],
            "dataset": data["dataset"].short_name if data["dataset"] else "",
            "campaign": data["campaign"].name if data["campaign"] else "",
            "options": StudyOptions(
                sample=data["sample"],
                feedback=data["feedback"],
                penalty=data["penalty"],
                allow_negative=data["allow_negative"],
                probes=data["probes"],
            ),
        }
