"""The function for verl's reward manager `batch`."""

import pytest
from touchstone_client import verl_compute_score_batch


def test_all_samples_go_in_one_request(server) -> None:
    compute = verl_compute_score_batch(server.url, "sample", "k", version=3)
    found = compute(
        data_sources=["d", "d"],
        solution_strs=["abc", "ab"],
        ground_truths=["x", None],
        extra_infos=[{"prompt": "?"}, None],
        weight=1,
    )
    assert [result["score"] for result in found] == [3.0, 2.0]
    (call,) = server.calls
    assert call["body"]["version"] == 3
    assert call["body"]["inputs"] == [
        {"prompt": "?", "response": "abc", "reference": "x"},
        {"text": "ab"},
    ]


def test_lengths_must_agree(server) -> None:
    compute = verl_compute_score_batch(server.url, "sample", "k")
    with pytest.raises(ValueError, match="shorter"):
        compute(data_sources=["d"], solution_strs=["a", "b"], ground_truths=["x"], extra_infos=[None])
    assert not server.calls
