"""Whose outcomes count, and which tasks are listed."""

from typing import Any
from urllib.parse import urlencode

from django import forms

from apps.accounts.models import Project
from apps.task_difficulty.selectors import CHOICES
from apps.trajectories.selectors import list_agents


class TaskDifficultyForm(forms.Form):
    agent = forms.ChoiceField(required=False, label="Outcomes of")
    only = forms.ChoiceField(required=False, choices=list(CHOICES.items()), label="Tasks")

    def __init__(self, *arguments: Any, project: Project, **options: Any) -> None:
        super().__init__(*arguments, **options)
        names = sorted({name for name, _ in list_agents(project) if name})
        field = self.fields["agent"]
        assert isinstance(field, forms.ChoiceField)
        field.choices = [("", "All agents"), *((name, name) for name in names)]

    @property
    def source(self) -> str:
        agent = self.cleaned_data.get("agent", "")
        return urlencode({"agent": agent}) if agent else ""

    @property
    def choice(self) -> str:
        return self.cleaned_data.get("only") or "all"
