"""How single sign-on is set up; see apps/accounts/sign_on.py for who comes in by it."""

from typing import Any

PROVIDER_ID = "sso"  # in its URLs: /oidc/sso/login/callback/ is what the provider is told


def sign_on_providers(*, url: str, client_id: str, secret: str, name: str) -> dict[str, Any]:
    """SOCIALACCOUNT_PROVIDERS of allauth; without a URL there is none. url: the issuer's."""
    app = {
        "provider_id": PROVIDER_ID,
        "name": name,
        "client_id": client_id,
        "secret": secret,
        "settings": {"server_url": url},
    }
    return {"openid_connect": {"APPS": [app] if url else [], "OAUTH_PKCE_ENABLED": True}}
