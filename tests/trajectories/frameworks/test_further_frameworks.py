"""Interactions of Gemini, threads of assistants and events of LangChain, in the shape of published ones."""

from typing import Any

from tests.trajectories.frameworks.further_documents import ASSISTANTS, INTERACTION, LANGCHAIN_EVENTS
from tests.trajectories.logs import read_document, read_lines, sources, step_counts


def test_an_interaction_has_its_thoughts_with_what_they_lead_to() -> None:
    read = read_document(INTERACTION)
    found = read.only
    assert (read.format, found.id, sources(found)) == ("gemini-interactions", "interactions/01K9", "suaa")
    assert found.steps[2].reasoning == "I need the order." and step_counts(found)["tied"] == 1
    assert (found.metadata["usage"]["input_tokens"], found.success) == (1842, None) and not read.dropped


def test_an_interaction_of_an_earlier_version_has_outputs_after_its_input() -> None:
    outputs = [step for step in INTERACTION["steps"] if step["type"] != "user_input"][:-1]
    given = {key: value for key, value in INTERACTION.items() if key not in ("steps", "output_text")}
    found = read_document(
        given | {"input": "Check it.", "outputs": [*outputs, {"type": "text", "text": "Nine days."}]}
    ).only
    assert sources(found) == "suaa" and (found.steps[1].text, found.steps[-1].text) == (
        "Check it.",
        "Nine days.",
    )


def test_a_failed_interaction_is_a_failure() -> None:
    assert read_document(INTERACTION | {"status": "failed"}).only.success is False


def test_a_thread_is_read_in_the_order_it_was_made_in() -> None:
    read = read_document(ASSISTANTS)
    found = read.only
    assert (read.format, found.id, found.agent, sources(found)) == (
        "openai-assistants",
        "run_7",
        "gpt-4.1",
        "suaa",
    )
    called, answered = found.steps[2], found.steps[3]
    assert [call.name for call in called.tool_calls] == ["lookup", "code_interpreter"]
    assert called.observation[1].content[0].text == "6\n" and step_counts(found)["tied"] == 2
    assert (answered.text, answered.metrics["prompt_tokens"]) == ("Six days late.", 418)
    assert found.metadata["usage"] == {"input_tokens": 1030, "output_tokens": 2} and not read.dropped


def test_a_list_of_messages_of_a_thread_is_read_from_its_end() -> None:
    found = read_document({"object": "list", "data": ASSISTANTS["thread_messages"], "has_more": False}).only
    assert sources(found) == "ua" and found.steps[1].text == "Six days late."


def test_events_of_langchain_have_each_message_once() -> None:
    read = read_lines(LANGCHAIN_EVENTS)
    found = read.only
    assert (read.format, found.id, found.agent, sources(found)) == (
        "langchain-events",
        "t1",
        "LangGraph",
        "uaa",
    )
    assert found.steps[1].tool_calls[0].arguments == {"q": "Ulm"} and step_counts(found)["tied"] == 1
    assert (found.steps[2].text, found.metadata["usage"]) == (
        "In Ulm.",
        {"input_tokens": 9, "output_tokens": 3},
    )


def test_a_tool_that_no_answer_called_is_called_where_it_starts() -> None:
    events: list[dict[str, Any]] = [
        {"event": "on_llm_end", "run_id": "l1", "data": {"generations": [["Let me search."]]}},
        {"event": "on_tool_start", "name": "search", "run_id": "t1", "data": {"input": {"q": "Ulm"}}},
        {"event": "on_tool_end", "name": "search", "run_id": "t1", "data": {"output": "Found."}},
    ]
    found = read_lines(events).only
    assert sources(found) == "aa" and found.steps[1].observation[0].content[0].text == "Found."
