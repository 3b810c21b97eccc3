"""Forms of campaigns, with the widgets our look expects."""

import copy
from typing import Any

from django import forms

from apps.accounts.models import Project
from apps.annotation.feedback_types import KINDS, SIDES
from apps.annotation.models import Campaign
from apps.annotation.services import Choice, ItemFilters
from apps.core.forms import add_widget_classes
from apps.rubrics.models import Rubric
from apps.rubrics.selectors import newest_rubrics
from apps.trajectories.models import Trajectory


class CampaignForm(forms.ModelForm):
    feedback_types = forms.MultipleChoiceField(
        label="Annotators are asked for",
        choices=[(kind.name, kind.label) for kind in KINDS.values()],
        widget=forms.CheckboxSelectMultiple,
        initial=["pairwise", "comment"],
    )

    overlap = forms.IntegerField(
        label="Annotators per item",
        min_value=1,
        max_value=100,
        help_text="More than one tells how far people agree.",
    )
    lock_minutes = forms.IntegerField(
        label="Minutes an item is held",
        min_value=1,
        max_value=1440,
        help_text="Without activity an item goes back to the others after this.",
    )

    class Meta:
        model = Campaign
        fields = [
            "name", "feedback_types", "rubric", "guidelines", "overlap", "ordering", "lock_minutes",
            "max_items_per_annotator", "deadline",
            "gold_percent", "gold_threshold", "hourly_pay", "swap_sides", "blind_agents", "show_outcome",
        ]  # fmt: skip
        labels = {
            "rubric": "Rubric",
            "ordering": "Order",
            "max_items_per_annotator": "Items for one person, at most",
            "deadline": "Deadline (UTC)",
            "gold_percent": "Gold among the work, percent",
            "gold_threshold": "Right answers to gold, at least percent",
            "hourly_pay": "Pay per hour",
            "swap_sides": "Swap sides by a coin",
            "blind_agents": "Hide the agents' names",
            "show_outcome": "Show the outcome",
        }
        help_texts = {
            "deadline": "Nothing is handed out after it; what is being judged can still be submitted.",
            "gold_percent": "How often an item with a known answer is mixed in, once you have marked some.",
            "gold_threshold": "Whoever is below it after five is paused, and you are told.",
            "hourly_pay": "In your currency. A pilot tells what the rest will cost.",
            "rubric": "The criteria of rubric scores, and of comparisons by criterion.",
            "guidelines": "Shown beside the work. What makes a run better here?",
            "swap_sides": "Keeps a liking for the left from becoming data.",
            "show_outcome": "Success and reward beside each run. It decides most judgements.",
        }
        widgets = {
            "guidelines": forms.Textarea(attrs={"rows": 5}),
            "deadline": forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        own = Rubric.objects.filter(pk=self.instance.rubric_id)
        self.fields["rubric"].queryset = newest_rubrics(self.instance.project) | own  # type: ignore[attr-defined]
        self.fields["rubric"].empty_label = "none"  # type: ignore[attr-defined]
        for kind in KINDS.values():
            for name, field in kind.options.items():
                said = self.instance.options.get(kind.name, {}).get(name)
                self.fields[f"{kind.name}-{name}"] = option = copy.deepcopy(field)
                option.required, option.initial = False, said
        if self.instance.pk and self.instance.items.exists():
            for name in ("feedback_types", *(name for name in self.fields if "-" in name)):
                del self.fields[name]
        add_widget_classes(self)

    def clean(self) -> dict[str, Any]:
        """The options of the kinds, gathered under `options`."""
        said = super().clean() or {}
        options: dict[str, dict[str, str]] = {}
        for name in [name for name in said if "-" in name]:
            kind, _, option = name.partition("-")
            value = said.pop(name)
            if value and kind in said.get("feedback_types", ()):
                options.setdefault(kind, {})[option] = value
        return said | ({"options": options} if "feedback_types" in self.fields else {})

    def options_by_kind(self) -> list[tuple[str, str, list[forms.BoundField]]]:
        """(kind, what it is about, its options) for each kind that can be chosen."""
        return [
            (kind.name, kind.about, [self[f"{kind.name}-{name}"] for name in kind.options])
            for kind in KINDS.values()
            if "feedback_types" in self.fields
        ]


class ItemsForm(forms.Form):
    size = forms.TypedChoiceField(
        label="Runs in an item",
        coerce=int,
        choices=[
            (1, "one"),
            (2, "two, to compare"),
            *((n, f"{n}, to rank") for n in range(3, len(SIDES) + 1)),
        ],
        initial=2,
    )
    per_task = forms.IntegerField(label="Items per task", min_value=0, max_value=1000, initial=1)
    differ = forms.ChoiceField(
        label="They differ in",
        choices=[("outcome", "their outcome"), ("agent", "the agent"), ("any", "anything")],
    )
    agents = forms.MultipleChoiceField(
        label="Only by these agents", required=False, widget=forms.SelectMultiple(attrs={"size": 4})
    )
    outcome = forms.ChoiceField(
        label="Only runs that",
        required=False,
        choices=[
            ("", "ended anyhow"),
            ("success", "succeeded"),
            ("failure", "failed"),
            ("unknown", "nobody checked"),
        ],
    )
    max_tokens = forms.IntegerField(
        label="No longer than (tokens)",
        required=False,
        min_value=1,
        help_text="Leaves out runs nobody could read.",
    )
    seed = forms.IntegerField(
        label="Seed", initial=0, help_text="The same seed picks the same items; another one picks others."
    )

    def __init__(self, *args: Any, project: Project, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        names = (
            Trajectory.objects.filter(project=project)
            .order_by("agent_name")
            .values_list("agent_name", flat=True)
        )
        choices = [(name, name) for name in names.distinct() if name]
        if choices:
            self.fields["agents"].choices = choices  # type: ignore[attr-defined]
        else:
            del self.fields["agents"]
        add_widget_classes(self)

    @property
    def choice(self) -> Choice:
        """What the item builder takes. Only of a valid form."""
        said = self.cleaned_data
        filters = ItemFilters(
            agents=tuple(said.get("agents", ())), outcome=said["outcome"], max_tokens=said["max_tokens"]
        )
        return Choice(
            size=said["size"],
            per_task=said["per_task"],
            differ=said["differ"],
            filters=filters,
            seed=said["seed"],
        )
