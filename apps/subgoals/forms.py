"""Forms of subgoals."""

from typing import Any

from django import forms
from django.http import QueryDict

from apps.proposals.forms import ProposalJobForm
from apps.subgoals.kind import DEFAULT_TASKS, MAX_TASKS, ProposalOptions
from apps.trajectories.filter_field import FilterField
from workers.subgoals.subgoal_lists import MOST_SUBGOALS

_SPARE_ROWS = 2


class ProposalForm(ProposalJobForm):
    filter = FilterField(
        label="Trajectories", help_text="Their tasks get subgoals, where they have none yet; empty for all."
    )
    most = forms.IntegerField(
        min_value=1,
        max_value=MAX_TASKS,
        initial=DEFAULT_TASKS,
        label="Tasks at most",
        help_text="One call for each.",
    )
    with_trajectories = forms.BooleanField(
        required=False,
        initial=True,
        label="Let the model read successful trajectories",
        help_text="Two of each task, masked as imports of the project are. Each subgoal must be found in one of them.",
    )

    def options(self) -> ProposalOptions:
        data = self.cleaned_data
        return ProposalOptions(
            filter=data["filter"], most=data["most"], with_trajectories=data["with_trajectories"]
        )


def typed_subgoals(data: QueryDict) -> list[dict[str, Any]]:
    """The rows of the form that are not empty, as JSON has them. What is no number stays a text, which is refused."""
    rows = []
    for place in range(MOST_SUBGOALS + _SPARE_ROWS):
        goal, expression, weight = (
            data.get(f"{name}-{place}", "").strip() for name in ("goal", "expression", "weight")
        )
        if goal or expression:
            rows.append({"goal": goal, "expression": expression, "weight": _number(weight or "1")})
    return rows


def form_rows(subgoals: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """With empty ones to type into."""
    spare = max(0, min(_SPARE_ROWS, MOST_SUBGOALS - len(subgoals)))
    shown = [{**row, "weight": _short(row["weight"])} for row in subgoals]
    return [*shown, *({"goal": "", "expression": "", "weight": 1} for _ in range(spare))]


def _short(weight: float | str) -> str:
    return weight if isinstance(weight, str) else f"{weight:g}"


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text
