"""The filter as a form of the explorer. Values are read by `parse_filter`; an invalid one has its error next to it."""

from collections.abc import Collection, Mapping
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.http import QueryDict
from django.utils.datastructures import MultiValueDict

from apps.accounts.models import Project
from apps.core.http.parameter_names import LONGEST_NAME, nearest_name
from apps.trajectories.filter_fields import FILTER_FIELDS
from apps.trajectories.filter_queries import registered_choices
from apps.trajectories.filters import FilterError, TrajectoryFilter, known_conditions, parse_filter
from apps.trajectories.selectors import fact_names, list_agents

SHOWN = ("text", "agent", "success", "pattern", "task")  # conditions that are always visible
_PLACEHOLDERS = {
    "text": 'refund "too late" -weather',
    "metadata": "key=value",
    "id": "12,15-20",
    "tool": "search_orders",
}
_MOST_CHOICES = 500
_MOST_IGNORED = 5
_SEARCH_NAMES = ("q", "query", "search")


class FilterForm(forms.Form):
    """filter: what the address asks for; None where a condition is invalid, and then no trajectory is shown."""

    filter: TrajectoryFilter | None

    def __init__(self, data: QueryDict, project: Project) -> None:
        conditions = known_conditions(data)
        super().__init__(MultiValueDict(conditions) if conditions else None)
        self._conditions = conditions
        names = dict.fromkeys(name for name, _ in list_agents(project) if name)
        choices = registered_choices(project) | {"agent": list(names), "fact": fact_names(project)}
        for name, field in FILTER_FIELDS.items():
            given = conditions.get(name, [])
            values = field.choices
            if name in choices:
                values = {value: value for value in [*choices[name], *given]}
            widget = _widget(name, values, given[-1] if given else "")
            self.fields[name] = forms.CharField(required=False, label=field.label, widget=widget)
        self.filter = None
        try:
            self.filter = parse_filter(conditions)
            self._filter_errors: dict[str, str] = {}
        except FilterError as error:
            self._filter_errors = error.errors

    def clean(self) -> dict[str, Any]:
        for name, message in self._filter_errors.items():
            if name in self.fields:
                message = self._choice_error(name) or f"{FILTER_FIELDS[name].label} {message}."
            self.add_error(name if name in self.fields else None, message)
        return self.cleaned_data

    def _choice_error(self, name: str) -> str:
        """Of a value that is not in the list of choices; their names are for addresses and are not shown."""
        field = FILTER_FIELDS[name]
        for value in self._conditions.get(name, []) if field.choices else []:
            try:
                field.read(value.strip())
            except ValueError:
                return f"{field.label} is {value[:60]!r}; choose one of the list."
        return ""

    def refuse(self, error: FilterError) -> None:
        """Show an error that the database gave: a name that the project does not have."""
        self.filter = None
        for name, message in error.errors.items():
            self.add_error(name, f"{FILTER_FIELDS[name].label} {message}.")

    @property
    def shown(self) -> list[forms.BoundField]:
        return [self[name] for name in SHOWN]

    @property
    def more(self) -> list[forms.BoundField]:
        return [field for field in self if field.name not in SHOWN]

    @property
    def more_open(self) -> bool:
        return bool({*self.data, *self.errors} - set(SHOWN))

    @property
    def further_values(self) -> list[tuple[str, str]]:
        """Of conditions with several values those that have no input: the form sends them as they are."""
        found = []
        for name in self.data:
            values = self.data.getlist(name)  # type: ignore[attr-defined]
            found += [(name, value) for value in values[:-1]]
        return found


def _widget(name: str, choices: Mapping[str, str] | None, value: str) -> forms.Widget:
    field = FILTER_FIELDS[name]
    if choices is not None and len(choices) <= _MOST_CHOICES:
        return forms.Select(attrs={"class": "form-select"}, choices=[("", "Any"), *choices.items()])
    attrs: dict[str, Any] = {"class": "form-control", "placeholder": _PLACEHOLDERS.get(name, "")}
    if name == "text":
        attrs |= {"type": "search", "data-key": "/", "data-key-label": "Search"}
    if name in ("since", "until") and len(value) in (0, len("2030-01-31")):
        attrs |= {"type": "date"}
    attrs["title"] = field.help
    return forms.TextInput(attrs=attrs)


def ignored_parameters(data: QueryDict, other: Collection[str]) -> list[tuple[str, str | None]]:
    """Names in an address that are no conditions, each with the one that may have been meant. other: known too."""
    names = [name for name in data if name not in FILTER_FIELDS and name not in other]
    return [
        (name[:LONGEST_NAME], "text" if name in _SEARCH_NAMES else _nearest_condition(name))
        for name in names[:_MOST_IGNORED]
    ]


def _nearest_condition(name: str) -> str | None:
    return nearest_name(name, list(FILTER_FIELDS)) if len(name) > 2 else None


def filter_chips(filter: TrajectoryFilter) -> list[tuple[str, str, str]]:
    """(label, value, query of the filter without it) of each condition."""
    pairs = list(filter.pairs())
    chips = []
    for place, (name, text) in enumerate(pairs):
        field = FILTER_FIELDS[name]
        shown = (field.choices or {}).get(text, text)
        rest = [
            pair
            for index, pair in enumerate(pairs)
            if index != place and not (name == "endpoint" and pair[0] in ("score_from", "score_to"))
        ]
        chips.append((field.label, shown, urlencode(rest)))
    return chips


def filter_title(filter: TrajectoryFilter, longest: int = 60) -> str:
    """A name for what is made of a filter: its values."""
    title = ", ".join(value for _, value, _ in filter_chips(filter))
    return title if len(title) <= longest else f"{title[: longest - 1]}…"
