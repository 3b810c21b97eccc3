"""What somebody sees who typed the wrong password too often."""

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse

from apps.core.middleware import error_page


def locked_out(
    request: HttpRequest, response: HttpResponse | None = None, credentials: dict[str, Any] | None = None
) -> HttpResponse:
    pause: timedelta = settings.AXES_COOLOFF_TIME
    minutes = round(pause.total_seconds() / 60)
    message = (
        f"The password was wrong too often. Try again in {minutes} minutes, or ask whoever runs this server."
    )
    page = error_page(request, status=429, message=message)
    page.headers["Retry-After"] = str(round(pause.total_seconds()))
    return page
