"""Deleting one's own account."""

from typing import cast

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from apps.accounts import login_guard
from apps.accounts.leaving import delete_user
from apps.accounts.login_guard import Subject
from apps.accounts.models import User
from apps.core.forms import add_widget_classes


class DeleteAccountForm(forms.Form):
    email = forms.CharField(label="Your e-mail address, to confirm", max_length=254)
    password = forms.CharField(label="Your password", widget=forms.PasswordInput, max_length=1000)
    erase_comments = forms.BooleanField(label="Erase the text of my comments too", required=False)

    def __init__(self, user: User, *args: object, **more: object) -> None:
        super().__init__(*args, **more)  # type: ignore[arg-type]
        self.user = user
        if not user.has_usable_password():
            del self.fields["password"]
        add_widget_classes(self)

    def clean_email(self) -> str:
        email = str(self.cleaned_data["email"]).strip().lower()
        if email != self.user.email:
            raise forms.ValidationError(f"Type {self.user.email} to confirm.")
        return email

    def clean_password(self) -> str:
        password = str(self.cleaned_data["password"])
        attempt = login_guard.begin_attempt(Subject("password", str(self.user.pk), resets=True))
        if not self.user.check_password(password):
            raise forms.ValidationError("This is not your password.")
        attempt.succeeded()
        return password


@login_required
@require_http_methods(["GET", "POST"])
@sensitive_post_parameters("password")
@never_cache
def account_delete(request: HttpRequest) -> HttpResponse:
    user = cast(User, request.user)
    form = DeleteAccountForm(user, request.POST or None)
    if not (request.method == "POST" and form.is_valid()):
        status = 422 if request.method == "POST" else 200
        return render(request, "accounts/account_delete.html", {"form": form}, status=status)
    erase = form.cleaned_data["erase_comments"]
    delete_user(user=user, by=user, reason="requested by the person", erase_comments=erase)
    request.session.flush()  # a sign-out would be recorded, and name them again
    request.user = AnonymousUser()
    messages.success(request, "Your account is deleted.")
    return redirect("accounts:login")
