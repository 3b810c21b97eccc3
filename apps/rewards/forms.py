"""Forms of endpoints, with the widgets our look expects."""

from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from apps.accounts.models import Project
from apps.training.models import RewardModel
from apps.training.selectors import models_of
from workers.errors import RewardError
from workers.schema import parse_json
from workers.schema.decode import require_object


def dress(form: forms.Form) -> None:
    for name, field in form.fields.items():
        css = "form-select" if isinstance(field.widget, forms.Select) else "form-control"
        field.widget.attrs["class"] = f"{css} is-invalid" if form.is_bound and form.errors.get(name) else css


class DeployForm(forms.Form):
    model: "forms.ModelChoiceField[RewardModel]" = forms.ModelChoiceField(
        None, label="Model", empty_label=None
    )
    endpoint = forms.SlugField(
        max_length=60, help_text="A new name makes an endpoint; an existing one gets a new revision."
    )
    transform = forms.ChoiceField(
        label="After normalising",
        choices=[
            ("", "nothing"),
            ("clip", "clip: min(reward - eta, 0)"),
            ("squash", "squash: into [-scale, scale]"),
        ],
        required=False,
    )
    amount = forms.FloatField(
        label="eta, or scale", required=False, help_text="In standard deviations of the training rewards."
    )

    def __init__(self, project: Project, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        models: Any = self.fields["model"]
        models.queryset = models_of(project)
        dress(self)

    def transforms(self) -> list[dict[str, Any]]:
        """As deploy takes them; the service checks the amount."""
        kind, amount = self.cleaned_data["transform"], self.cleaned_data["amount"]
        if not kind:
            return []
        name = {"clip": "eta", "squash": "scale"}[kind]
        return [{"type": kind} | ({} if amount is None else {name: amount})]


class ComposeForm(forms.Form):
    """A whole spec, as JSON."""

    endpoint = forms.SlugField(
        max_length=60, help_text="A new name makes an endpoint; an existing one gets a new revision."
    )
    spec = forms.CharField(
        widget=forms.Textarea(attrs={"rows": 18, "spellcheck": "false"}),
        help_text="Components and transforms, as JSON.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        dress(self)
        self.fields["spec"].widget.attrs["class"] += " mono"

    def clean_spec(self) -> dict[str, Any]:
        try:
            return require_object(parse_json(self.cleaned_data["spec"]))
        except RewardError as error:
            raise ValidationError(error.message) from None


class TryForm(forms.Form):
    """A prompt and a response, or any item as JSON."""

    prompt = forms.CharField(required=False, widget=forms.Textarea(attrs={"rows": 2}), strip=False)
    response = forms.CharField(required=False, widget=forms.Textarea(attrs={"rows": 4}), strip=False)
    item = forms.CharField(
        label="Or an item, as JSON",
        required=False,
        widget=forms.Textarea(attrs={"rows": 4, "spellcheck": "false", "placeholder": '{"messages": [...]}'}),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        dress(self)

    def clean_item(self) -> dict[str, Any] | None:
        text = self.cleaned_data["item"].strip()
        if not text:
            return None
        try:
            return require_object(parse_json(text))
        except RewardError as error:
            raise ValidationError(error.message) from None

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or {}
        if not self.errors and data["item"] is None and not data["response"]:
            self.add_error("response", "Write what the agent answered, or give an item.")
        return data

    def to_item(self) -> dict[str, Any]:
        data = self.cleaned_data
        item: dict[str, Any] = data["item"] or {"prompt": data["prompt"], "response": data["response"]}
        return item


class SwitchForm(forms.Form):
    reason = forms.CharField(max_length=500, help_text="Callers are told.")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        dress(self)
