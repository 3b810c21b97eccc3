"""The way to the provider of single sign-on, and back."""

import logging

from allauth.socialaccount.providers.openid_connect import views as allauth
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from requests import RequestException

from apps.accounts import login_guard
from apps.accounts.login_guard import Subject
from apps.accounts.models import User
from apps.core.http.middleware import error_page
from apps.core.logs import current

log = logging.getLogger(__name__)


@require_safe
@never_cache
def begin(request: HttpRequest, provider_id: str) -> HttpResponse:
    # Only to log in: `process=connect` would tie someone's identity there to whatever account is logged in here.
    query = request.GET.copy()
    query["process"] = "login"
    request.GET = query  # type: ignore[assignment]
    try:
        answer: HttpResponse = allauth.login(request, provider_id)
    except RequestException as error:
        log.warning("single sign-on did not work: %s", error)
        message = f"{settings.OIDC_NAME} did not answer. Try again in a while, or log in with a password."
        return error_page(request, status=502, message=message, reference=current("request"))
    return answer


@require_safe
@never_cache
def come_back(request: HttpRequest, provider_id: str) -> HttpResponse:
    subject = Subject("sign-on", login_guard.address_of(request))
    login_guard.refuse_while_closed(subject)
    answer: HttpResponse = allauth.callback(request, provider_id)
    if answer.status_code >= 400:
        login_guard.begin_attempt(subject)
    elif isinstance(request.user, User):
        login_guard.remember_device(request, answer, request.user)
    return answer
