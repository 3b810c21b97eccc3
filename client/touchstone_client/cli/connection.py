"""Which server, project and key a command uses: of the environment, else of a profile."""

import os
from dataclasses import dataclass

import httpx

from touchstone_client.cli.profiles import (
    DEFAULT,
    Profile,
    is_open_to_others,
    profiles_file,
    read_profiles,
)
from touchstone_client.cli.statuses import UsageFailed
from touchstone_client.client import Client
from touchstone_client.retries import Retries

URL, PROJECT, KEY = "TOUCHSTONE_URL", "TOUCHSTONE_PROJECT", "TOUCHSTONE_API_KEY"
CLIENT_KEY = "TOUCHSTONE_KEY"  # what `Client` reads
PROFILE = "TOUCHSTONE_PROFILE"
RETRIES = Retries(attempts=4, longest_seconds=10.0)
_LOCAL = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class Connection:
    """profile: the name of the one that is used, None where all is from the environment."""

    url: str
    project: str
    key: str
    profile: str | None

    def __repr__(self) -> str:
        return f"Connection({self.url!r}, {self.project!r})"

    def client(self, *, retries: Retries = RETRIES) -> Client:
        return Client(self.url, self.project, self.key, retries=retries)


def profile_name(given: str | None) -> str:
    return given or os.environ.get(PROFILE) or DEFAULT


def find_connection(given_profile: str | None = None, given_project: str | None = None) -> Connection:
    """Raises UsageFailed, with what to do, where something is not set."""
    name = profile_name(given_profile)
    profile = read_profiles().get(name)
    if profile is None and given_profile is not None:
        raise UsageFailed(f"There is no profile {name!r}; run `touchstone login --profile {name}`.")
    url = os.environ.get(URL)
    key = key_of_environment()
    if url is not None:
        url = checked_url(url, URL)
    _keep_key_to_its_server(url, key, profile, name)
    found_url = url or (profile and profile.url)
    project = given_project or os.environ.get(PROJECT) or (profile and profile.project)
    found_key = key or (profile and profile.key)
    if not found_url or not found_key:
        missing = URL if not found_url else KEY
        raise UsageFailed(f"No server is set up: run `touchstone login`, or set {missing}.")
    if not project:
        raise UsageFailed(f"No project is set: pass --project, or set {PROJECT}.")
    uses_profile = profile is not None and (url is None or key is None)
    return Connection(found_url, project, checked_key(found_key), name if uses_profile else None)


def warning_of_profile() -> str | None:
    path = profiles_file()
    if is_open_to_others(path):
        return f"Others on this computer can read your keys; run: chmod 600 {path}"
    return None


def _keep_key_to_its_server(url: str | None, key: str | None, profile: Profile | None, name: str) -> None:
    """A stored key goes to the server that it was stored for, and to no other."""
    if url is not None and key is None and profile is not None and url != profile.url:
        raise UsageFailed(
            f"{URL} is {url}, and the key of the profile {name!r} is for {profile.url}; set {KEY} too, or run "
            "`touchstone login` with another --profile."
        )


def key_of_environment() -> str | None:
    return os.environ.get(KEY) or os.environ.get(CLIENT_KEY) or None


def checked_url(text: str, source: str) -> str:
    """Without a slash at its end. Raises UsageFailed unless it is the address of a server."""
    try:
        url = httpx.URL(text.strip())
    except httpx.InvalidURL as error:
        raise UsageFailed(f"{source} is not an address: {error}") from None
    if url.scheme not in ("http", "https") or not url.host:
        raise UsageFailed(
            f"{source} is {text[:100]!r}; it must begin with http:// or https://, such as https://touchstone.example."
        )
    if url.userinfo or url.query or url.fragment:
        raise UsageFailed(f"{source} must be an address alone, without a user, a query or a fragment.")
    return str(url).rstrip("/")


def checked_key(text: str) -> str:
    """Raises UsageFailed, without the key in it."""
    key = text.strip()
    if not key or not key.isascii() or not key.isprintable() or " " in key:
        raise UsageFailed("The key is empty, or has characters that no API key has; copy it again.")
    return key


def is_unencrypted(url: str) -> bool:
    """Whether the key and all data can be read on the way."""
    parsed = httpx.URL(url)
    return parsed.scheme == "http" and parsed.host not in _LOCAL
