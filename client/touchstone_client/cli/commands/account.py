"""`login`, `logout`, `whoami`."""

import getpass
import os
import sys
from argparse import ArgumentParser
from dataclasses import replace

from touchstone_client.api_objects import ApiObject
from touchstone_client.cli.command import Command, Session
from touchstone_client.cli.connection import (
    KEY,
    PROJECT,
    URL,
    Connection,
    checked_key,
    checked_url,
    is_unencrypted,
    key_of_environment,
    profile_name,
)
from touchstone_client.cli.profiles import Profile, profiles_file, read_profiles, remove_profile, save_profile
from touchstone_client.cli.statuses import CommandFailed, UsageFailed
from touchstone_client.resources.people import ApiKey


def _add_login(parser: ArgumentParser) -> None:
    parser.add_argument("url", nargs="?", metavar="URL", help="address of the server, https://...")
    parser.add_argument(
        "--key-stdin",
        action="store_true",
        help=f"read the API key from standard input; by default it is asked for, or {KEY}",
    )


def _login(session: Session) -> None:
    options = session.options
    name = profile_name(options.profile)
    url = _url(options.url, name)
    if is_unencrypted(url):
        session.output.note(
            f"{url} is not encrypted: others can read the key on its way. Use https:// if you can."
        )
    key = checked_key(_key(from_stdin=options.key_stdin))
    found = Connection(url, "-", key, None)
    with found.client() as client:
        own_key, projects = client.keys.current(), client.projects.list().take(2)
    found = replace(found, project=_project(options.project, [project.slug for project in projects]))
    save_profile(name, Profile(found.url, found.project, found.key))
    scopes = ", ".join(own_key.scopes)
    session.output.say(f"Signed in to {found.url}, project {found.project}. Scopes of the key: {scopes}.")
    session.output.say(f"The profile {name!r} is in {profiles_file()}.")
    session.output.result(_identity(found, name, own_key))


def _url(given: str | None, name: str) -> str:
    if given is not None:
        return checked_url(given, "URL")
    if found := os.environ.get(URL):
        return checked_url(found, URL)
    if (profile := read_profiles().get(name)) is not None:
        return profile.url
    if not sys.stdin.isatty():
        raise UsageFailed("The address of the server is missing: touchstone login URL")
    return checked_url(input("Address of the server: "), "The address")


def _key(*, from_stdin: bool) -> str:
    if from_stdin:
        return sys.stdin.readline()
    if found := key_of_environment():
        return found
    if not sys.stdin.isatty():
        raise UsageFailed(f"There is no terminal to ask for the key on: use --key-stdin, or set {KEY}.")
    return getpass.getpass("API key (it is not shown): ")


def _project(given: str | None, slugs: list[str]) -> str:
    """The key's own. Raises CommandFailed where another was given."""
    wanted = given or os.environ.get(PROJECT) or None
    if not slugs:
        raise CommandFailed("The key opens no project; create another one on the page API keys.")
    if wanted is not None and wanted not in slugs:
        raise CommandFailed(f"The key is one of the project {slugs[0]}, not of {wanted}.")
    return wanted or slugs[0]


def _add_nothing(parser: ArgumentParser) -> None:
    """No options of its own."""


def _logout(session: Session) -> None:
    name = profile_name(session.options.profile)
    profile = remove_profile(name)
    session.output.say(
        f"Removed the profile {name!r} of {profile.url}. The key itself still works; revoke it on the page API keys "
        "if no one else uses it."
    )
    session.output.result({"profile": name, "url": profile.url, "project": profile.project})


def _whoami(session: Session) -> None:
    connection, client = session.connection, session.client
    own_key, project = client.keys.current(), client.projects.get()
    identity = _identity(connection, connection.profile, own_key)
    rows = {
        "server": connection.url,
        "project": f"{project.slug} ({project.name})" if project.name else project.slug,
        "profile": connection.profile or "none: settings are from the environment",
        "key": f"{own_key.name or own_key.prefix}, of {own_key.owner}",
        "scopes": ", ".join(own_key.scopes),
        "expires": own_key.expires.isoformat(" ", "minutes") if own_key.expires else "never",
    }
    for label, text in rows.items():
        session.output.say(f"{label:8} {text}")
    session.output.result(identity)


def _identity(connection: Connection, profile: str | None, key: ApiKey | ApiObject) -> dict[str, object]:
    named = key.to_dict()
    return {"url": connection.url, "project": connection.project, "profile": profile} | {
        name: named.get(name) for name in ("prefix", "scopes", "owner", "expires")
    }


COMMANDS = (
    Command(
        "login", "Store the address of a server and an API key, once the server took it", _add_login, _login
    ),
    Command("logout", "Remove what login stored", _add_nothing, _logout),
    Command("whoami", "Show server, project and scopes of the key", _add_nothing, _whoami),
)
