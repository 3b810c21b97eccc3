"""Forms of hindsight tasks."""

from django import forms

from apps.hindsight.kind import DEFAULT_TRAJECTORIES, MAX_TRAJECTORIES, HindsightOptions
from apps.proposals.forms import ProposalJobForm
from apps.trajectories.filter_field import FilterField


class HindsightProposalForm(ProposalJobForm):
    filter = FilterField(
        label="Trajectories",
        help_text="Those that get a text, where they have none yet; success=no for those that failed at their task; "
        "empty for all.",
    )
    most = forms.IntegerField(
        min_value=1,
        max_value=MAX_TRAJECTORIES,
        initial=DEFAULT_TRAJECTORIES,
        label="Trajectories at most",
        help_text="The newest, one call for each. They are masked as imports of the project are.",
    )

    def options(self) -> HindsightOptions:
        return HindsightOptions(filter=self.cleaned_data["filter"], most=self.cleaned_data["most"])
