"""The form that starts a proposal; a kind adds its fields and the words of `filter` and `most`."""

from typing import Any

from django import forms

from apps.accounts.models import Project
from apps.core.forms import add_widget_classes
from apps.llm.models import LLMConnection
from apps.llm.selectors import list_llm_connections
from apps.trajectories.filter_field import offer_filter_builder


class ProposalJobForm(forms.Form):
    llm_connection = forms.ModelChoiceField(LLMConnection.objects.none(), label="LLM connection")

    def __init__(self, *args: Any, project: Project, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        connections = self.fields["llm_connection"]
        assert isinstance(connections, forms.ModelChoiceField)
        connections.queryset = list_llm_connections(project)
        offer_filter_builder(self, project)
        add_widget_classes(self)
