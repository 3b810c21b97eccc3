"""What Monocle's spans say in addition to the conversation that all conventions are tested with."""

from typing import Any

from apps.trajectories.formats.tracing import monocle


def span(kind: str, given: Any, gave: Any) -> dict[str, Any]:
    events = [
        {"name": "data.input", "attributes": {"input": given}},
        {"name": "data.output", "attributes": {"response": gave}},
    ]
    return {"attributes": {"monocle_apptrace.version": "0.8.0", "span.type": kind}, "events": events}


def test_calls_and_roles_are_read_in_each_of_their_forms() -> None:
    for gave in (
        '{"ai": {"name": "look", "args": {"order": 7}, "id": "c1", "type": "tool_call"}}',
        '{"ai": "[{\\"name\\": \\"look\\", \\"args\\": {\\"order\\": 7}, \\"id\\": \\"c1\\"}]"}',
        "{\"assistant\": \"{'toolUseId': 'c1', 'name': 'look', 'input': {'order': 7}}\"}",
    ):
        found = monocle.content(span("inference.framework", ["{'human': 'Where?'}"], gave))
        assert found is not None and found.kind == "model"
        assert found.asked == [{"role": "user", "content": "Where?"}]
        ((call,),) = [message["tool_calls"] for message in found.answer]
        assert (call["id"], call["function"]) == ("c1", {"name": "look", "arguments": {"order": 7}})


def test_parts_are_text_and_an_empty_message_is_none() -> None:
    found = monocle.content(
        span(
            "inference",
            ['{"user": "[{\\"type\\": \\"text\\", \\"text\\": \\"Hi\\"}]"}', '{"user": ""}'],
            "Hello",
        )
    )
    assert found is not None
    assert found.asked == [{"role": "user", "content": "Hi"}]
    assert found.answer == [{"role": "assistant", "content": "Hello"}]


def test_spans_of_others_and_of_functions_are_no_calls() -> None:
    assert monocle.content({"attributes": {"span.type": "inference"}, "events": []}) is None
    found = monocle.content(span("custom", '{"args": [5]}', '{"result": 5}'))
    assert found is not None and found.kind == "other" and not found.answer
