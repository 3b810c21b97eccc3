"""Query parameters: refused by the reward API's own calls, ignored where trainers' clients may send them."""

from typing import Any

ITEM = {"text": "hello"}


def test_an_unknown_parameter_is_refused(http: Any, endpoint: str) -> None:
    for call in ("score", "rank", "compare", "critique", "advantages"):
        refused = http.post(f"/api/v1/rewards/{endpoint}/{call}?versoin=1", json={"inputs": [ITEM]})
        assert refused.status_code == 422
        found = refused.json()
        assert found["parameter"] == "versoin" and "Did you mean version?" in found["detail"]
    refused = http.get(f"/api/v1/rewards/{endpoint}/?version=1")
    assert refused.status_code == 422 and "this call has none" in refused.json()["detail"]
    # A key in the address of a call that takes none there is not shown again.
    refused = http.post(f"/api/v1/rewards/{endpoint}/score?key=tsk_1_secret", json={"inputs": [ITEM]})
    assert refused.status_code == 422 and "tsk_1" not in refused.text


def test_a_trainers_client_may_send_its_own(http: Any, endpoint: str) -> None:
    body = {"model": endpoint, "input": "hello"}
    assert http.post("/compat/vllm/classify?api-version=2024", json=body).status_code == 200
