"""The peers' checker of a SCIM service: `python scim_checker.py URL TOKEN` prints what it finds as JSON.

A process of its own: its models take half a second to define here and 5 to 10 s where a suite is loaded, since pydantic
looks their docstrings up by way of every module that is there.
"""

import json
import sys

import httpx2
from scim2_client.engines.httpx2 import SyncSCIMClient
from scim2_tester import check_server


def main(url: str, token: str) -> None:
    headers = {"Authorization": f"Bearer {token}"}
    with httpx2.Client(base_url=url, headers=headers, trust_env=False) as http:
        results = check_server(SyncSCIMClient(http))
    json.dump([[result.status.name, result.title, result.reason] for result in results], sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
