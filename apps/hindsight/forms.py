"""Forms of hindsight tasks."""

from typing import Any

from django import forms

from apps.accounts.models import Project
from apps.core.forms import add_widget_classes
from apps.hindsight.services import DEFAULT_TRAJECTORIES, MAX_TRAJECTORIES, HindsightOptions
from apps.llm.models import LLMConnection
from apps.llm.selectors import list_llm_connections
from apps.trajectories.filter_field import FilterField, offer_filter_builder


class HindsightProposalForm(forms.Form):
    llm_connection = forms.ModelChoiceField(LLMConnection.objects.none(), label="LLM connection")
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

    def __init__(self, *args: Any, project: Project, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        connections = self.fields["llm_connection"]
        assert isinstance(connections, forms.ModelChoiceField)
        connections.queryset = list_llm_connections(project)
        offer_filter_builder(self, project)
        add_widget_classes(self)

    def options(self) -> HindsightOptions:
        return HindsightOptions(filter=self.cleaned_data["filter"], most=self.cleaned_data["most"])
