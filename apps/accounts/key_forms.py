"""Forms of API keys: what one may, for whom, how much, from where and until when."""

from datetime import datetime, time, timedelta
from typing import Any

from django import forms
from django.conf import settings
from django.utils import timezone

from apps.accounts.keys import KeyLimits, Owner
from apps.accounts.models import ApiKey, Project, Scope, User
from apps.accounts.service_accounts import service_account_for
from apps.core.forms import add_widget_classes

SCOPE_WORDS = {
    Scope.INGEST: "write and read trajectories, items, traces",
    Scope.FEEDBACK_READ: "read feedback",
    Scope.FEEDBACK_WRITE: "add feedback from elsewhere",
    Scope.TRAIN: "datasets, runs, models",
    Scope.REWARD: "request rewards from endpoints",
    Scope.ADMIN: "change endpoints and webhooks",
}


_MINE, _NEW = "me", "new"


class KeyLimitsForm(forms.Form):
    requests_per_minute = forms.IntegerField(label="Requests per minute", required=False, min_value=0)
    tokens_per_minute = forms.IntegerField(label="Tokens per minute", required=False, min_value=0)
    tokens_per_day = forms.IntegerField(label="Tokens per day", required=False, min_value=0)
    allowed_networks = forms.CharField(
        label="Allowed addresses",
        required=False,
        widget=forms.Textarea(attrs={"rows": 2, "placeholder": "203.0.113.0/24"}),
        help_text="Networks, separated by commas or line breaks. Leave empty to allow any address.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, default in (
            ("requests_per_minute", settings.KEY_REQUESTS_PER_MINUTE),
            ("tokens_per_minute", settings.KEY_TOKENS_PER_MINUTE),
            ("tokens_per_day", settings.KEY_TOKENS_PER_DAY),
        ):
            meaning = f"{default:,}" if default else "no limit"
            self.fields[name].help_text = f"Leave empty for the default ({meaning}). 0 means no limit."
        self._fill_in()
        add_widget_classes(self)  # validates what was sent

    def _fill_in(self) -> None:
        """What a form with more fields says of them."""

    @property
    def limits(self) -> KeyLimits:
        data = self.cleaned_data
        networks = data["allowed_networks"].replace(",", " ").split()
        return KeyLimits(
            data["requests_per_minute"], data["tokens_per_minute"], data["tokens_per_day"], tuple(networks)
        )

    @classmethod
    def of(cls, key: ApiKey) -> "KeyLimitsForm":
        fields = ("requests_per_minute", "tokens_per_minute", "tokens_per_day")
        values: dict[str, Any] = {name: getattr(key, name) for name in fields}
        return cls(initial=values | {"allowed_networks": "\n".join(key.allowed_networks)})


class ApiKeyForm(KeyLimitsForm):
    name = forms.CharField(label="Purpose", max_length=100, required=False)
    owner = forms.ChoiceField(
        label="Owner",
        initial=_MINE,
        required=False,
        help_text="A member's keys end when they leave the project. A service account's keys stay.",
    )
    service_account = forms.SlugField(label="Name of the new service account", max_length=60, required=False)
    scopes = forms.MultipleChoiceField(
        label="Scopes",
        choices=[(scope.value, words) for scope, words in SCOPE_WORDS.items()],
        widget=forms.CheckboxSelectMultiple,
    )
    expires = forms.DateField(
        label="Expires on", required=False, widget=forms.DateInput(attrs={"type": "date"})
    )
    never_expires = forms.BooleanField(label="Never expires", required=False)
    field_order = ("name", "owner", "service_account", "scopes", "expires", "never_expires")

    def __init__(self, project: Project, *args: Any, **kwargs: Any) -> None:
        self.project = project
        super().__init__(*args, **kwargs)

    def _fill_in(self) -> None:
        rows = self.project.service_accounts.filter(is_active=True).order_by("name")
        names = rows.values_list("name", flat=True)
        accounts = [(f"account:{name}", f"service account {name}") for name in names]
        self.fields["owner"].choices = [(_MINE, "me"), *accounts, (_NEW, "a new service account")]  # type: ignore[attr-defined]
        days = settings.KEY_DAYS
        self.fields["expires"].help_text = (
            f"Leave empty for {days} days from now." if days else "Leave empty for no expiry."
        )

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or {}
        if (
            data.get("owner") == _NEW
            and not data.get("service_account")
            and "service_account" not in self.errors
        ):
            self.add_error("service_account", "Give the new service account a name.")
        if data.get("expires") and data.get("never_expires"):
            self.add_error(
                "never_expires", "Set an expiry date or choose that the key never expires, not both."
            )
        return data

    def owner_for(self, user: User) -> Owner:
        """The member, or the service account, which is made if it is new. Raises DomainError."""
        chosen = self.cleaned_data["owner"] or _MINE
        if chosen == _MINE:
            return user
        name = self.cleaned_data["service_account"] if chosen == _NEW else chosen.removeprefix("account:")
        return service_account_for(project=self.project, name=name, by=user)

    @property
    def expires_at(self) -> datetime | None:
        """The end of the last day, UTC."""
        day = self.cleaned_data["expires"]
        return timezone.make_aware(datetime.combine(day, time.min)) + timedelta(days=1) if day else None


class RemoveMemberForm(forms.Form):
    """What becomes of the member's keys. Without any, nothing is asked."""

    REVOKE, HAND_OVER = "revoke", "hand-over"
    keys = forms.ChoiceField(
        label="API keys", choices=[(REVOKE, "Revoke the keys"), (HAND_OVER, "Transfer the keys")]
    )
    service_account = forms.SlugField(
        label="Service account",
        max_length=60,
        required=False,
        help_text="Created if no service account has this name.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        add_widget_classes(self)

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or {}
        if data.get("keys") == self.HAND_OVER and not data.get("service_account"):
            self.add_error("service_account", "Name the service account that gets the keys.")
        return data
