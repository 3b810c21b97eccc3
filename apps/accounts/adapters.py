"""How allauth behaves here: no pages of its own for accounts, our addresses, secrets of second factors encrypted."""

from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.mfa.adapter import DefaultMFAAdapter
from django.http import HttpRequest, HttpResponse

from apps.core.http.client_address import client_address
from apps.core.http.middleware import error_page
from apps.core.storage.encryption import decrypted, encrypted


class AccountAdapter(DefaultAccountAdapter):
    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False  # by an invitation only

    def get_client_ip(self, request: HttpRequest) -> str:
        return client_address(request)

    def respond_user_inactive(self, request: HttpRequest, user: Any) -> HttpResponse:
        return error_page(request, status=403, message="This account is closed.")

    def send_notification_mail(self, *args: Any, **kwargs: Any) -> None:
        """The audit trail has it."""


class SecondFactorAdapter(DefaultMFAAdapter):
    def encrypt(self, text: str) -> str:
        return encrypted(text)

    def decrypt(self, encrypted_text: str) -> str:
        return decrypted(encrypted_text)
