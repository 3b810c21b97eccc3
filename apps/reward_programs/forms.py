"""Forms of reward programs."""

from typing import Any

from django import forms

from apps.accounts.models import Project
from apps.core.forms import add_widget_classes
from apps.llm.models import LLMConnection
from apps.llm.selectors import list_llm_connections
from apps.reward_programs.models import RewardProgramVersion
from apps.reward_programs.selectors import list_reward_programs
from apps.reward_programs.services import (
    DEFAULT_SAMPLE,
    LONGEST_NOTE,
    MAX_SAMPLE,
    DraftOptions,
    DryRunOptions,
)
from apps.trajectories.filter_field import FilterField, offer_filter_builder
from workers.programs.source import MOST_SECONDS

EXAMPLE = """def reward(trajectory):
    agent = [step for step in trajectory["steps"] if step["source"] == "agent"]
    return 1.0 - 0.1 * len(agent)
"""


class RewardProgramForm(forms.Form):
    name = forms.CharField(max_length=60, help_text="A new text of an existing name is its next version.")
    code = forms.CharField(
        widget=forms.Textarea(attrs={"rows": 20, "spellcheck": "false"}),
        strip=False,
        initial=EXAMPLE,
        help_text="Defines reward(trajectory), a number, and optionally step_rewards(trajectory), a list with a number "
        "for each agent step.",
    )
    note = forms.CharField(
        required=False, max_length=LONGEST_NOTE, help_text="What it is for, or what changed."
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        add_widget_classes(self)
        self.fields["code"].widget.attrs["class"] += " mono"

    def clean_code(self) -> str:
        """Browsers send other line ends than people typed."""
        return str(self.cleaned_data["code"]).replace("\r\n", "\n")


class DraftForm(forms.Form):
    name = forms.CharField(max_length=60, help_text="The draft is the next version of this name.")
    llm_connection = forms.ModelChoiceField(LLMConnection.objects.none(), label="LLM connection")
    task = forms.CharField(
        max_length=LONGEST_NOTE,
        widget=forms.Textarea(attrs={"rows": 4}),
        help_text="What the reward is to pay for, and what it must not pay for.",
    )
    comments = forms.CharField(
        required=False,
        max_length=LONGEST_NOTE,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text="On earlier code, one on each line.",
    )
    revises = forms.ModelChoiceField(
        RewardProgramVersion.objects.none(), required=False, empty_label="none, write it from the task"
    )
    filter = FilterField(
        label="Trajectories",
        help_text="What drafts are tried on, 30 at most, such as success=no; empty for all.",
    )
    stored_comments = forms.BooleanField(
        required=False,
        label="Use comments that are stored on these trajectories",
        help_text="The newest 40, of annotations and of the pages of trajectories. Drafts are tried on these first.",
    )
    excerpts = forms.BooleanField(
        required=False,
        initial=True,
        label="Let the critic read excerpts of trajectories",
        help_text="Of four at most, 1,500 characters each, masked as imports of the project are.",
    )

    def __init__(self, *args: Any, project: Project, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        connections, programs = self.fields["llm_connection"], self.fields["revises"]
        assert isinstance(connections, forms.ModelChoiceField) and isinstance(
            programs, forms.ModelChoiceField
        )
        connections.queryset = list_llm_connections(project)
        programs.queryset = list_reward_programs(project)
        offer_filter_builder(self, project)
        add_widget_classes(self)

    def options(self) -> DraftOptions:
        data = self.cleaned_data
        revised = data["revises"]
        return DraftOptions(
            task=data["task"],
            comments=data["comments"],
            filter=data["filter"],
            revises=None if revised is None else revised.pk,
            stored_comments=data["stored_comments"],
            excerpts=data["excerpts"],
        )


class DryRunForm(forms.Form):
    filter = FilterField()
    sample = forms.IntegerField(
        min_value=1, max_value=MAX_SAMPLE, initial=DEFAULT_SAMPLE, label="Trajectories at most"
    )
    seconds = forms.FloatField(
        min_value=0.01, max_value=MOST_SECONDS, initial=1.0, label="Seconds for each at most"
    )

    def __init__(self, *args: Any, project: Project, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        offer_filter_builder(self, project)
        add_widget_classes(self)

    def options(self) -> DryRunOptions:
        return DryRunOptions(**self.cleaned_data)
