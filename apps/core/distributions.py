"""What our two distributions are called, and which version is installed.

Their names are not `touchstone` and `touchstone-client`: the first belongs to a stranger on the package index, the
second to the first person who takes it. None of ours is ever asked from an index (docs/decisions.md).
"""

from importlib.metadata import version

SERVER = "touchstone-rewards"
CLIENT = "touchstone-rewards-client"  # imported as `touchstone_client`


def client_wheel_name() -> str:
    return f"{CLIENT.replace('-', '_')}-{version(CLIENT)}-py3-none-any.whl"


def installed_version() -> str:
    return version(SERVER)
