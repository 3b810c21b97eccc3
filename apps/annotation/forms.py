"""Forms of campaigns, with the widgets our look expects."""

from typing import Any

from django import forms

from apps.accounts.models import Project
from apps.annotation.kinds import KINDS
from apps.annotation.models import Campaign
from apps.annotation.services import PairFilters
from apps.trajectories.models import Trajectory


def _dress(form: forms.BaseForm) -> None:
    for name, field in form.fields.items():
        widget = field.widget
        if isinstance(widget, forms.CheckboxInput | forms.CheckboxSelectMultiple):
            css = "form-check-input"
        else:
            css = "form-select" if isinstance(widget, forms.Select) else "form-control"
        widget.attrs["class"] = f"{css} is-invalid" if form.is_bound and form.errors.get(name) else css


class CampaignForm(forms.ModelForm):
    kinds = forms.MultipleChoiceField(
        label="Annotators are asked for",
        choices=[(kind.name, kind.label) for kind in KINDS.values()],
        widget=forms.CheckboxSelectMultiple,
        initial=list(KINDS),
    )

    overlap = forms.IntegerField(
        label="Annotators per item",
        min_value=1,
        max_value=100,
        help_text="More than one tells how far people agree.",
    )
    lease_minutes = forms.IntegerField(
        label="Minutes an item is held",
        min_value=1,
        max_value=1440,
        help_text="Without activity an item goes back to the others after this.",
    )

    class Meta:
        model = Campaign
        fields = [
            "name", "kinds", "guidelines", "overlap", "ordering", "lease_minutes",
            "swap_sides", "blind_agents", "show_outcome",
        ]  # fmt: skip
        labels = {
            "ordering": "Order",
            "swap_sides": "Swap sides by a coin",
            "blind_agents": "Hide the agents' names",
            "show_outcome": "Show the outcome",
        }
        help_texts = {
            "guidelines": "Shown beside the work. What makes a run better here?",
            "swap_sides": "Keeps a liking for the left from becoming data.",
            "show_outcome": "Success and reward beside each run. It decides most judgements.",
        }
        widgets = {"guidelines": forms.Textarea(attrs={"rows": 5})}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.pk and self.instance.items.exists():
            del self.fields["kinds"]
        _dress(self)


class PairForm(forms.Form):
    per_task = forms.IntegerField(label="Pairs per task", min_value=0, max_value=1000, initial=1)
    differ = forms.ChoiceField(
        label="The two differ in",
        choices=[("outcome", "their outcome"), ("agent", "the agent"), ("any", "anything")],
    )
    agents = forms.MultipleChoiceField(
        label="Only by these agents", required=False, widget=forms.SelectMultiple(attrs={"size": 4})
    )
    max_tokens = forms.IntegerField(
        label="No longer than (tokens)",
        required=False,
        min_value=1,
        help_text="Leaves out runs nobody could read.",
    )
    seed = forms.IntegerField(
        label="Seed", initial=0, help_text="The same seed picks the same pairs; another one picks others."
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
        _dress(self)

    @property
    def options(self) -> dict[str, Any]:
        """What the pair builder takes. Only of a valid form."""
        said = self.cleaned_data
        filters = PairFilters(agents=tuple(said.get("agents", ())), max_tokens=said["max_tokens"])
        return {
            "per_task": said["per_task"],
            "differ": said["differ"],
            "filters": filters,
            "seed": said["seed"],
        }
