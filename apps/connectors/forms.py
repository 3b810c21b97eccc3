"""The form of a connector, with the fields of its kind."""

from typing import Any

from django import forms

from apps.accounts.models import Project
from apps.connectors.models import LONGEST_URL, Connector
from apps.connectors.services import MOST_MINUTES, ConnectorSpec
from apps.connectors.sources.source import SourceKind, SourceOption
from apps.connectors.targets import TARGETS
from apps.rewards.models import Endpoint

_TEXT = {"class": "form-control"}
_OPTION = "option_"
SCHEDULES = (
    ("", "On demand only"),
    ("15", "Every 15 minutes"),
    ("60", "Every hour"),
    ("360", "Every 6 hours"),
    ("1440", "Every day"),
)


class ConnectorForm(forms.Form):
    """edited: an existing connector. Its secret is never shown."""

    name = forms.CharField(max_length=100, widget=forms.TextInput(attrs=_TEXT))

    def __init__(
        self, data: Any = None, *, kind: SourceKind, project: Project, edited: Connector | None = None
    ) -> None:
        super().__init__(data)
        self.kind = kind
        self.fields["name"].initial = kind.title if edited is None else edited.name
        self._add_address(kind)
        self._add_credentials(kind, edited)
        for option in kind.options:
            self.fields[_OPTION + option.name] = _option_field(option)
        self._add_schedule(kind, edited)
        if kind.name in TARGETS:
            self._add_push(project)
        if edited is not None:
            self.initial = {
                name: getattr(edited, name)
                for name in (
                    *("name", "address", "username", "settle_minutes", "overlap_minutes"),
                    *("push_endpoint", "push_after_pull"),
                )
            }
            self.initial["every_minutes"] = str(edited.every_minutes or "")
            self.initial |= {_OPTION + name: value for name, value in edited.options.items()}

    @property
    def option_fields(self) -> list[forms.BoundField]:
        return [self[_OPTION + option.name] for option in self.kind.options]

    @property
    def spec(self) -> ConnectorSpec:
        """Of a valid form."""
        values = self.cleaned_data
        every = values["every_minutes"]
        return ConnectorSpec(
            name=values["name"],
            address=values.get("address", ""),
            username=values.get("username", ""),
            options={option.name: values[_OPTION + option.name] for option in self.kind.options},
            settle_minutes=values["settle_minutes"],
            overlap_minutes=values.get("overlap_minutes", 60),
            every_minutes=int(every) if every else None,
            push_endpoint=values.get("push_endpoint", ""),
            push_after_pull=values.get("push_after_pull", False),
        )

    def field_at(self, pointer: str | None) -> str | None:
        """The field that an error of a service points to."""
        name = (pointer or "").removeprefix("/")
        name = _OPTION + name.removeprefix("options/") if name.startswith("options/") else name
        return name if name in self.fields else None

    def _add_address(self, kind: SourceKind) -> None:
        if kind.address:
            self.fields["address"] = forms.CharField(
                label=kind.address,
                required=kind.address_required,
                max_length=LONGEST_URL,
                initial=kind.default_address,
                help_text=kind.address_help,
                widget=forms.TextInput(attrs=_TEXT),
            )

    def _add_credentials(self, kind: SourceKind, edited: Connector | None) -> None:
        if kind.username_label:
            self.fields["username"] = forms.CharField(
                label=kind.username_label,
                required=kind.key_required,
                max_length=500,
                widget=forms.TextInput(attrs=_TEXT | {"autocomplete": "off"}),
            )
        if kind.key_label:
            keep = edited is not None and bool(edited.secret)
            self.fields["secret"] = forms.CharField(
                label=kind.key_label,
                required=kind.key_required and not keep,
                max_length=4000,
                help_text="Leave empty to keep the stored key."
                if keep
                else f"{kind.key_help} Stored encrypted and never shown again.".strip(),
                widget=forms.PasswordInput(attrs=_TEXT | {"autocomplete": "off"}),
            )

    def _add_schedule(self, kind: SourceKind, edited: Connector | None) -> None:
        choices = list(SCHEDULES)
        every = str(edited.every_minutes or "") if edited is not None else ""
        if every not in dict(choices):
            choices.append((every, f"Every {every} minutes"))
        self.fields["every_minutes"] = forms.ChoiceField(
            label="Schedule",
            required=False,
            choices=choices,
            widget=forms.Select(attrs={"class": "form-select"}),
        )
        texts = {
            "settle_minutes": (
                "Quiet time (minutes)",
                5,
                "A trace or file is taken when nothing was added to it for so long.",
            ),
            "overlap_minutes": (
                "Overlap (minutes)",
                60,
                "How far before the last run each run looks again, for traces that arrived late or went on.",
            ),
        }
        for name, (label, initial, text) in texts.items():
            if name == "overlap_minutes" and not kind.has_traces:
                continue
            self.fields[name] = forms.IntegerField(
                label=label,
                min_value=0,
                max_value=MOST_MINUTES,
                initial=initial,
                help_text=text,
                widget=forms.NumberInput(attrs=_TEXT),
            )

    def _add_push(self, project: Project) -> None:
        names = Endpoint.objects.filter(project=project).order_by("name").values_list("name", flat=True)
        self.fields["push_endpoint"] = forms.ChoiceField(
            label="Endpoint",
            required=False,
            choices=[("", "None: feedback only"), *((name, name) for name in names)],
            help_text="Its rewards of the pulled trajectories are pushed with the feedback.",
            widget=forms.Select(attrs={"class": "form-select"}),
        )
        self.fields["push_after_pull"] = forms.BooleanField(
            label="Push scores back after each pull",
            required=False,
            widget=forms.CheckboxInput(attrs={"class": "form-check-input"}),
        )


def _option_field(option: SourceOption) -> forms.Field:
    given: dict[str, Any] = {
        "label": option.label,
        "required": option.required,
        "initial": option.default,
        "help_text": option.help_text,
    }
    if option.choices is not None:
        return forms.ChoiceField(
            choices=option.choices, widget=forms.Select(attrs={"class": "form-select"}), **given
        )
    return forms.CharField(max_length=500, widget=forms.TextInput(attrs=_TEXT), **given)
