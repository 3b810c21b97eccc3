"""Hands a command to the fork server of tests/docs_check/fork_server.py, with its standard files, and ends as it did.

Run as `python -IS fork_client.py SOCKET PROGRAM ARGUMENTS...`: it imports little, so that it starts in a hundredth of
the time that Django takes.
"""

import json
import os
import socket
import sys


def request(
    address: str, command: list[str], descriptors: list[int], environment: dict[str, str]
) -> socket.socket:
    """A connection on which the exit status comes, as one line of text."""
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(address)
    folder = os.getcwd()  # noqa: PTH109 - pathlib takes as long to import as all else here
    text = json.dumps({"command": command, "folder": folder, "environment": environment}).encode() + b"\n"
    socket.send_fds(connection, [text[:1]], descriptors)
    connection.sendall(text[1:])
    return connection


def main() -> None:
    with request(sys.argv[1], sys.argv[2:], [0, 1, 2], dict(os.environ)) as connection:
        status = connection.makefile().readline().strip()
    sys.exit(int(status) if status else "It was killed.")


if __name__ == "__main__":
    main()
