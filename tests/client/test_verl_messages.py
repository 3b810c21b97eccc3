"""Conversations that an agent loop of verl hands over in `extra_fields`."""

import asyncio

import numpy as np
import pytest
from touchstone_client import verl_compute_score, verl_compute_score_batch, verl_compute_score_sync

CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
MESSAGES = [
    {"role": "user", "content": "?"},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": "42"},
    {"role": "assistant", "content": "It is 42."},
]


@pytest.mark.parametrize("messages", [MESSAGES, np.array(MESSAGES, dtype=object)])
def test_the_conversation_is_scored_instead_of_prompt_and_solution(server, messages) -> None:
    sample = {
        "data_source": "d",
        "solution_str": "look 42 It is 42.",
        "ground_truth": "42",
        "extra_info": {"turns": messages, "prompt": "not sent"},
    }
    asyncio.run(verl_compute_score(server.url, "sample", "k", messages="turns")(**sample))
    verl_compute_score_sync(server.url, "sample", "k", messages="turns")(**sample)
    verl_compute_score_batch(server.url, "sample", "k", messages="turns")(
        data_sources=["d"],
        solution_strs=["look 42 It is 42."],
        ground_truths=["42"],
        extra_infos=[sample["extra_info"]],
    )
    sent = [call["body"]["inputs"] for call in server.calls]
    assert sent == [[{"messages": MESSAGES, "reference": "42"}]] * 3


@pytest.mark.parametrize("extra", [{}, {"turns": []}, {"turns": None}, {"turns": "text"}])
def test_a_sample_without_the_conversation_is_refused(server, extra) -> None:
    compute = verl_compute_score_sync(server.url, "sample", "k", messages="turns")
    with pytest.raises(ValueError, match=r"extra_info\['turns'\] has no messages; the agent loop has to put"):
        compute(data_source="d", solution_str="a", ground_truth=None, extra_info=extra)
    assert not server.calls
