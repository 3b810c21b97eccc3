"""A label reaches the reference of an item whichever way it is sent: by the protocol or by the client's script."""

import json
from typing import Any

import pytest
from touchstone_client import openrlhf, trl, verl

from apps.rewards.serving.wire import openrlhf as openrlhf_wire
from apps.rewards.serving.wire import slime
from workers.schema.rendered_items import parse_scored_item

LABELS: list[tuple[Any, str | None]] = [
    (None, None),
    ("", None),
    ("42", "42"),
    (0, "0"),
    (False, "false"),
    (["é", {"a": 1}], '["é", {"a": 1}]'),
]


@pytest.mark.parametrize(("label", "reference"), LABELS)
def test_protocol_and_client_make_the_same_reference(label: Any, reference: str | None) -> None:
    for query, prompt in (("Hi.No.", "Hi."), ("No.", "")):
        body = {"query": [query], "prompts": [prompt], "labels": [label]}
        (sent,) = openrlhf_wire.parse(json.dumps(body).encode(), {}).items
        item, is_exact = openrlhf.to_item(query, prompt, label)
        assert is_exact
        assert sent.reference == parse_scored_item(dict(item)).reference == reference
    (sent,) = slime.parse(json.dumps({"prompt": "Hi.", "response": "No.", "label": label}).encode(), {}).items
    assert sent.reference == reference
    (by_trl,) = trl.to_items(["Hi."], ["No."], [label])
    by_verl = verl.to_item("No.", label, {}, "prompt")
    assert by_trl.get("reference") == by_verl.get("reference") == reference


def test_one_label_that_is_no_list_is_kept() -> None:
    body = {"query": "No.", "prompts": "", "labels": 0}
    (sent,) = openrlhf_wire.parse(json.dumps(body).encode(), {}).items
    assert sent.reference == "0"
