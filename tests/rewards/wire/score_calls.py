"""What `/score` says of items, for comparison with other protocols."""

from typing import Any

import httpx


def score_results(http: httpx.Client, endpoint: str, *inputs: dict[str, Any]) -> list[dict[str, Any]]:
    reply = http.post(f"/api/v1/rewards/{endpoint}/score", json={"inputs": list(inputs)})
    assert reply.status_code == 200, reply.text
    found: list[dict[str, Any]] = reply.json()["results"]
    return found
