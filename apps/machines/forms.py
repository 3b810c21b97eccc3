from typing import Any

from django import forms

from apps.core.forms import add_widget_classes
from apps.machines.services import DEFAULT_HOURS, MOST_HOURS


class JoinTokenForm(forms.Form):
    hours = forms.IntegerField(
        label="Valid for hours",
        initial=DEFAULT_HOURS,
        min_value=1,
        max_value=MOST_HOURS,
        help_text="Joins one machine. A machine that has joined stays until it is revoked.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        add_widget_classes(self)
