"""The filters of the inbox, and the choice of notifications."""

from typing import Any

from django import forms
from django.conf import settings

from apps.inbox.models import MailChoice, NotificationEvent
from apps.inbox.services import NotificationChoice

_SELECT = {"class": "form-select form-select-sm"}
_CHECK = {"class": "form-check-input"}


class NotificationFilterForm(forms.Form):
    show = forms.ChoiceField(
        choices=[("", "all"), ("unread", "unread only")],
        required=False,
        widget=forms.Select(attrs=_SELECT),
    )
    event = forms.ChoiceField(
        label="About",
        choices=[("", "everything"), *NotificationEvent.choices],
        required=False,
        widget=forms.Select(attrs=_SELECT),
    )
    project = forms.ChoiceField(required=False, widget=forms.Select(attrs=_SELECT))

    def __init__(self, *args: Any, projects: list[tuple[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["project"].choices = [("", "all"), *projects]  # type: ignore[attr-defined]


class PreferenceForm(forms.Form):
    """A switch for the page and a choice of mail for every event."""

    def __init__(self, *args: Any, chosen: dict[str, NotificationChoice], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for event, label in NotificationEvent.choices:
            self.fields[f"{event}-page"] = forms.BooleanField(
                label=f"In the inbox: {label}",
                required=False,
                initial=chosen[event].is_listed,
                widget=forms.CheckboxInput(attrs=_CHECK | {"aria-label": f"In the inbox: {label}"}),
            )
            self.fields[f"{event}-mail"] = forms.ChoiceField(
                label=f"By mail: {label}",
                choices=MailChoice.choices,
                required=False,
                initial=chosen[event].mail,
                disabled=not settings.MAIL,
                widget=forms.Select(attrs=_SELECT | {"aria-label": f"By mail: {label}"}),
            )

    def rows(self) -> list[tuple[str, forms.BoundField, forms.BoundField]]:
        """(event in words, switch, mail) of every event."""
        return [
            (str(label), self[f"{event}-page"], self[f"{event}-mail"])
            for event, label in NotificationEvent.choices
        ]

    def chosen(self) -> dict[str, NotificationChoice]:
        values = self.cleaned_data
        return {
            event: NotificationChoice(values[f"{event}-page"], values[f"{event}-mail"] or MailChoice.OFF)
            for event in NotificationEvent.values
        }
