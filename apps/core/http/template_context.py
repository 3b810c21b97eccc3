"""What every template may use."""

from typing import Any

from django.conf import settings
from django.http import HttpRequest

from apps.core.sign_on import PROVIDER_ID


def site(request: HttpRequest) -> dict[str, Any]:
    return {
        "site_name": "Touchstone",
        "public_url": settings.PUBLIC_URL,
        "sign_on": settings.OIDC_NAME if settings.OIDC_URL else "",
        "sign_on_id": PROVIDER_ID,
        "has_docs_site": (settings.DOCS_SITE / "index.html").is_file(),
    }
