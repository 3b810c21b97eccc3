"""Forms of campaigns and their items."""

import copy
from typing import Any

from django import forms

from apps.accounts.models import Project
from apps.annotation.feedback_types import FEEDBACK_TYPES
from apps.annotation.models import Campaign
from apps.annotation.presentation import SIDES
from apps.annotation.services import ItemBuildOptions, ItemFilters
from apps.core.forms import add_widget_classes
from apps.rubrics.models import Rubric
from apps.rubrics.selectors import newest_rubrics
from apps.trajectories.models import Trajectory


class CampaignForm(forms.ModelForm):
    feedback_types = forms.MultipleChoiceField(
        label="Feedback types",
        choices=[(kind.name, kind.label) for kind in FEEDBACK_TYPES.values()],
        widget=forms.CheckboxSelectMultiple,
        initial=["pairwise", "comment"],
    )

    overlap = forms.IntegerField(
        label="Annotators per item",
        min_value=1,
        max_value=100,
        help_text="Agreement can be measured with two or more.",
    )
    lock_minutes = forms.IntegerField(
        label="Lock timeout (minutes)",
        min_value=1,
        max_value=1440,
        help_text="An item returns to the queue after this time without activity.",
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
            "max_items_per_annotator": "Maximum items per annotator",
            "deadline": "Deadline (UTC)",
            "gold_percent": "Gold items (percent)",
            "gold_threshold": "Gold accuracy threshold (percent)",
            "hourly_pay": "Hourly pay",
            "swap_sides": "Randomize left and right",
            "blind_agents": "Hide agent names",
            "show_outcome": "Show outcome",
        }
        help_texts = {
            "deadline": "No items are assigned after the deadline. Annotations in progress can still be submitted.",
            "gold_percent": "Share of assigned items that are gold items, if the campaign has any.",
            "gold_threshold": "Annotators below it after five gold items are paused, and an alert is raised.",
            "hourly_pay": "In your currency. Used by a pilot to estimate the cost of the remaining items.",
            "rubric": "The criteria of rubric scores, and of comparisons by criterion.",
            "guidelines": "Shown next to each item. Describe what makes a trajectory better.",
            "swap_sides": "Prevents position bias.",
            "show_outcome": "Shows success and reward of each trajectory. This biases annotators.",
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
        for kind in FEEDBACK_TYPES.values():
            for name, field in kind.options.items():
                said = self.instance.options.get(kind.name, {}).get(name)
                self.fields[f"{kind.name}-{name}"] = option = copy.deepcopy(field)
                option.required, option.initial = False, said
        if self.instance.pk and self.instance.items.exists():
            for name in ("feedback_types", *(name for name in self.fields if "-" in name)):
                del self.fields[name]
        add_widget_classes(self)

    def clean(self) -> dict[str, Any]:
        """Collect the options of the feedback types under `options`."""
        said = super().clean() or {}
        options: dict[str, dict[str, str]] = {}
        for name in [name for name in said if "-" in name]:
            kind, _, option = name.partition("-")
            value = said.pop(name)
            if value and kind in said.get("feedback_types", ()):
                options.setdefault(kind, {})[option] = value
        return said | ({"options": options} if "feedback_types" in self.fields else {})

    def options_by_kind(self) -> list[tuple[str, str, list[forms.BoundField]]]:
        """(name, description, options) of each feedback type that can be chosen."""
        return [
            (kind.name, kind.description, [self[f"{kind.name}-{name}"] for name in kind.options])
            for kind in FEEDBACK_TYPES.values()
            if "feedback_types" in self.fields
        ]


class ItemsForm(forms.Form):
    size = forms.TypedChoiceField(
        label="Trajectories per item",
        coerce=int,
        choices=[
            (1, "one"),
            (2, "two (comparison)"),
            *((n, f"{n} (ranking)") for n in range(3, len(SIDES) + 1)),
        ],
        initial=2,
    )
    per_task = forms.IntegerField(label="Items per task", min_value=0, max_value=1000, initial=1)
    differ = forms.ChoiceField(
        label="Trajectories differ in",
        choices=[("outcome", "outcome"), ("agent", "agent"), ("any", "anything")],
    )
    agents = forms.MultipleChoiceField(
        label="Agents", required=False, widget=forms.SelectMultiple(attrs={"size": 4})
    )
    outcome = forms.ChoiceField(
        label="Outcome",
        required=False,
        choices=[
            ("", "any outcome"),
            ("success", "succeeded"),
            ("failure", "failed"),
            ("unknown", "unknown outcome"),
        ],
    )
    max_tokens = forms.IntegerField(
        label="Maximum length (tokens)",
        required=False,
        min_value=1,
        help_text="Excludes longer trajectories.",
    )
    seed = forms.IntegerField(label="Seed", initial=0, help_text="The same seed selects the same items.")

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
    def choice(self) -> ItemBuildOptions:
        """Options for the item builder. Requires a valid form."""
        said = self.cleaned_data
        filters = ItemFilters(
            agents=tuple(said.get("agents", ())), outcome=said["outcome"], max_tokens=said["max_tokens"]
        )
        return ItemBuildOptions(
            size=said["size"],
            per_task=said["per_task"],
            differ=said["differ"],
            filters=filters,
            seed=said["seed"],
        )
