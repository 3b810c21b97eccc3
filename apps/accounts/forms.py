"""Forms of accounts, with the widgets our look expects."""

from typing import Any

from django import forms
from django.conf import settings
from django.contrib.auth.forms import AuthenticationForm, PasswordChangeForm

from apps.accounts.invitations import MOST_DAYS, MOST_USES
from apps.accounts.models import Role
from apps.core.forms import add_widget_classes


class LoginForm(AuthenticationForm):
    error_messages = {
        "invalid_login": "The e-mail address or the password is wrong.",
        "inactive": "This account is closed.",
    }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["username"].label = "E-mail"
        self.fields["username"].widget = forms.EmailInput(
            attrs={"autofocus": True, "autocomplete": "username"}
        )
        add_widget_classes(self)

    def clean_username(self) -> str:
        email: str = self.cleaned_data["username"]
        return email.strip().lower()


class PasswordForm(PasswordChangeForm):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["new_password1"].help_text = "At least ten characters; not one of the common ones."
        self.fields["new_password2"].help_text = ""
        add_widget_classes(self)

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        new = cleaned.get("new_password1")
        if new and new == cleaned.get("old_password"):
            self.add_error("new_password1", "This is the password you have. Choose another one.")
        return cleaned


class ProjectForm(forms.Form):
    name = forms.CharField(
        label="Name",
        max_length=200,
        help_text="The address of the project is made from it.",
        widget=forms.TextInput(attrs={"placeholder": "Support desk", "autofocus": True}),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        add_widget_classes(self)


class FirstAccountForm(forms.Form):
    email = forms.EmailField(
        label="E-mail", widget=forms.EmailInput(attrs={"autocomplete": "username", "autofocus": True})
    )
    password = forms.CharField(
        label="Password",
        strip=False,
        help_text="At least ten characters; not one of the common ones.",
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        add_widget_classes(self)


class ResetForm(forms.Form):
    email = forms.EmailField(label="E-mail", widget=forms.EmailInput(attrs={"autocomplete": "username"}))

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        add_widget_classes(self)


class ChoosePasswordForm(forms.Form):
    """with_name: for a new account."""

    name = forms.CharField(label="Name", max_length=200, required=False)
    password = forms.CharField(
        label="Password",
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text="At least ten characters; not one of the common ones.",
    )

    def __init__(self, *args: Any, with_name: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not with_name:
            del self.fields["name"]
        add_widget_classes(self)


class MemberForm(forms.Form):
    email = forms.EmailField(label="E-mail")
    role = forms.ChoiceField(choices=Role.choices, initial=Role.ANNOTATOR)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        add_widget_classes(self)

    def clean_email(self) -> str:
        email: str = self.cleaned_data["email"]
        return email.strip().lower()


class InvitationForm(forms.Form):
    prefix = "invitation"  # it stands next to another form that asks for a role and an address

    role = forms.ChoiceField(choices=Role.choices, initial=Role.ANNOTATOR)
    email = forms.EmailField(
        label="Only for this e-mail",
        required=False,
        help_text="Leave empty to let anyone with the link join.",
    )
    most_uses = forms.IntegerField(label="Max uses", initial=1, min_value=1, max_value=MOST_USES)
    days = forms.IntegerField(label="Expires after (days)", initial=14, min_value=1, max_value=MOST_DAYS)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        add_widget_classes(self)


class JoinForm(forms.Form):
    """email: the one an invitation is for."""

    email = forms.EmailField(label="E-mail", widget=forms.EmailInput(attrs={"autocomplete": "username"}))
    name = forms.CharField(label="Name", max_length=200, required=False)
    password = forms.CharField(
        label="Password",
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text="At least ten characters; not one of the common ones.",
    )

    def __init__(self, *args: Any, email: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if email:
            self.fields["email"].initial = email
            self.fields["email"].disabled = True
        if settings.MAIL:  # the link that is mailed asks for the rest
            del self.fields["name"], self.fields["password"]
        add_widget_classes(self)


class RoleForm(forms.Form):
    role = forms.ChoiceField(choices=Role.choices)
