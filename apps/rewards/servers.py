"""Names of servers that compute models: those of a project, and the operator's in TOUCHSTONE_VLLM_SERVERS."""

from collections.abc import Container, Iterable

from django.conf import settings

DISCOVERED = "dns+"  # before an address: each address of its name is a replica
ServerKey = tuple[str, str]  # a project's slug, empty for the operator's; and the name of a server


def operator_addresses(text: str) -> list[str]:
    """Of one server of the setting: its replicas, separated by `|`."""
    return [address for part in text.split("|") if (address := part.strip())]


def server_key(project: str, name: str, registered: Container[ServerKey]) -> ServerKey | None:
    """What `server: name` of a spec means: the project's own server, else the operator's."""
    if (project, name) in registered:
        return project, name
    return ("", name) if name in settings.VLLM_SERVERS else None


def unknown_server_message(name: str, own: Iterable[str] = ()) -> str:
    known = ", ".join(sorted({*settings.VLLM_SERVERS, *own})) or "none"
    return (
        f"there is no server {name!r}; the servers of this project and of TOUCHSTONE_VLLM_SERVERS are: {known}. "
        "Register one on the page Servers."
    )
