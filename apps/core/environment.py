"""Reading settings from the environment, with an error that names the variable."""

import ipaddress
import os
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

_MAIL_PORTS = {"smtp": 25, "smtp+tls": 587, "smtps": 465}


def env_str(name: str, default: str) -> str:
    return os.environ.get(name, default)


def env_int(name: str, default: int) -> int:
    raw = os.environ.get(name, "")
    try:
        return int(raw) if raw else default
    except ValueError:
        raise ImproperlyConfigured(f"{name} is {raw!r}; it must be a whole number.") from None


def env_bool(name: str, default: bool) -> bool:
    raw = os.environ.get(name, "").lower()
    if raw in ("", "1", "true", "yes", "on", "0", "false", "no", "off"):
        return raw in ("1", "true", "yes", "on") if raw else default
    raise ImproperlyConfigured(f"{name} is {raw!r}; it must be 1 or 0.")


def env_choice(name: str, default: str, choices: list[str]) -> str:
    value = os.environ.get(name) or default
    if value not in choices:
        raise ImproperlyConfigured(f"{name} is {value!r}; it must be one of {', '.join(choices)}.")
    return value


def env_list(name: str, default: list[str]) -> list[str]:
    raw = os.environ.get(name, "")
    return [part.strip() for part in raw.split(",") if part.strip()] if raw else default


def env_networks(name: str) -> list[ipaddress.IPv4Network | ipaddress.IPv6Network]:
    """`10.0.0.0/8,192.0.2.7,...`: networks, or single addresses."""
    networks = []
    for part in env_list(name, []):
        try:
            networks.append(ipaddress.ip_network(part, strict=False))
        except ValueError:
            raise ImproperlyConfigured(
                f"{name} has {part!r}; it must be addresses (192.0.2.7) or networks (10.0.0.0/8), separated by commas."
            ) from None
    return networks


def env_pairs(name: str) -> dict[str, str]:
    """`name=value,...`. What is wrong is not repeated: it may hold a key."""
    pairs = [part.partition("=") for part in env_list(name, [])]
    if not all(key and value for key, _, value in pairs):
        raise ImproperlyConfigured(f"{name} must be `name=address`, several separated by commas.")
    return {key.strip(): value.strip() for key, _, value in pairs}


def env_mail(name: str) -> dict[str, Any]:
    """`smtp://USER:PASSWORD@HOST:PORT`, `smtp+tls://` (STARTTLS) or `smtps://`; what Django calls its parts. Empty
    without. What is wrong is not repeated: it may hold a password."""
    raw = os.environ.get(name, "")
    if not raw:
        return {}
    try:
        parts = urlsplit(raw)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    if parts.scheme not in _MAIL_PORTS or not parts.hostname:
        raise ImproperlyConfigured(
            f"{name} must be smtp://HOST:PORT, smtp+tls://USER:PASSWORD@HOST:PORT or smtps://USER:PASSWORD@HOST."
        )
    return {
        "EMAIL_HOST": parts.hostname,
        "EMAIL_PORT": port or _MAIL_PORTS[parts.scheme],
        "EMAIL_HOST_USER": unquote(parts.username or ""),
        "EMAIL_HOST_PASSWORD": unquote(parts.password or ""),
        "EMAIL_USE_TLS": parts.scheme == "smtp+tls",
        "EMAIL_USE_SSL": parts.scheme == "smtps",
    }


def env_path(name: str, default: Path) -> Path:
    return Path(os.environ.get(name) or default).expanduser().resolve()
