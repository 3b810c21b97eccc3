"""allauth's forms of second factors, in our look and with failures counted for every process.

A code of an app is good once: the time step of the last one is kept with the secret, under a lock, since the cache that
allauth uses for it is one process's own.
"""

from typing import Any

from allauth.mfa.base.forms import AuthenticateForm, ReauthenticateForm
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.forms import GenerateRecoveryCodesForm
from allauth.mfa.totp.forms import ActivateTOTPForm, DeactivateTOTPForm
from allauth.mfa.totp.internal.auth import format_hotp_value, hotp_value, yield_hotp_counters_from_time
from allauth.mfa.utils import decrypt
from allauth.mfa.webauthn.forms import AddWebAuthnForm, EditWebAuthnForm
from django import forms
from django.contrib.auth import authenticate
from django.db import transaction

from apps.accounts import login_guard
from apps.accounts.login_guard import Subject
from apps.accounts.models import User
from apps.core.forms import add_widget_classes

_LAST_STEP = "last_step"


class _Dressed:
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        fields: dict[str, forms.Field] = self.fields  # type: ignore[attr-defined]
        if "code" in fields:
            fields["code"].label = "Code"
            fields["code"].widget.attrs |= {"autofocus": True, "inputmode": "numeric", "placeholder": ""}
        add_widget_classes(self)  # type: ignore[arg-type]


class _Counted(_Dressed):
    """A code typed by the person who says they are `user`."""

    user: User

    def clean_code(self) -> str:
        if len(self.cleaned_data["code"]) > 40:  # type: ignore[attr-defined]
            raise forms.ValidationError("A code has 6 digits, a recovery code 8.")
        attempt = login_guard.begin_attempt(Subject("second-factor", str(self.user.pk), resets=True))
        code: str = super().clean_code()  # type: ignore[misc]
        authenticator: Authenticator | None = getattr(self, "authenticator", None)
        if authenticator is not None and authenticator.type == Authenticator.Type.TOTP:
            _use_up(authenticator, code)
        attempt.succeeded()
        return code


class CodeForm(_Counted, AuthenticateForm):
    """After the password."""


class CodeAgainForm(_Counted, ReauthenticateForm):
    """Within a session."""


class ActivateAppForm(_Counted, ActivateTOTPForm):
    pass


class DeactivateAppForm(_Dressed, DeactivateTOTPForm):
    pass


class AddPasskeyForm(_Dressed, AddWebAuthnForm):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["name"].label = "Name"
        self.fields["passwordless"].label = "Allow login with this passkey alone, without a password"
        self.fields["passwordless"].help_text = "The device then asks for its PIN, a finger or a face."


class RenamePasskeyForm(_Dressed, EditWebAuthnForm):
    pass


class NewRecoveryCodesForm(_Dressed, GenerateRecoveryCodesForm):
    pass


class PasswordAgainForm(forms.Form):
    """Before something that a borrowed session must not do."""

    password = forms.CharField(
        label="Password",
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password", "autofocus": True}),
    )

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.user = user
        add_widget_classes(self)

    def clean_password(self) -> str:
        password: str = self.cleaned_data["password"]
        attempt = login_guard.begin_attempt(Subject("password", str(self.user.pk), resets=True))
        if authenticate(None, username=self.user.email, password=password) is None:
            raise forms.ValidationError("The password is wrong.")
        attempt.succeeded()
        return password


@transaction.atomic
def _use_up(authenticator: Authenticator, code: str) -> None:
    """Raises ValidationError for a code of a time step that was used before."""
    kept = Authenticator.objects.select_for_update().get(pk=authenticator.pk)
    secret, digits = decrypt(kept.data["secret"]), "".join(code.split())
    steps = [
        step
        for step in yield_hotp_counters_from_time()
        if format_hotp_value(hotp_value(secret, step)) == digits
    ]
    if not steps or max(steps) <= kept.data.get(_LAST_STEP, 0):
        raise forms.ValidationError("This code was used already. Wait for the next one.")
    kept.data[_LAST_STEP] = max(steps)
    kept.save(update_fields=["data"])
    authenticator.data = kept.data
