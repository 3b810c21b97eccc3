"""Names that rows of many programs give to what was asked, what stood before it, and what is known of the answer."""

from typing import Any

from apps.trajectories.formats.data_rows.row_trajectories import decoded_messages
from apps.trajectories.formats.data_rows.trainer_rows import Messages, message_column
from workers.errors import InvalidRecord
from workers.schema.message_shapes import ROLES

PROMPTS = (
    *("prompt", "question", "query", "instruction", "input", "problem", "goal", "usrmsg", "user_message"),
    *(
        "user_input",
        "user_query",
        "user_prompt",
        "req",
        "request",
        "issue",
        "problem_statement",
        "task_description",
    ),
    *(
        "user_question",
        "question_text",
        "task_prompt",
        "input_text",
        "query_text",
        "prompt_text",
        "user_text",
    ),
    *("instructions", "full_prompt", "input_prompt", "original_prompt", "question_content", "final_prompt"),
    *("taskDescription", "inputs", "user", "human", "post", "main_input"),
)
SYSTEMS = ("system", "system_prompt", "system_message", "system_instruction")
REFERENCES = (
    *("reference_answer", "reference", "ground_truth", "gold_answer", "gold", "gt", "expected_answer"),
    *("expected_output", "correct_answer", "canonical_solution", "target", "answer"),
)
HISTORIES = ("history", "chat_history", "context_messages")


def first_name(row: dict[str, Any], names: tuple[str, ...]) -> str:
    """The first of the names under which there is text; empty where there is none."""
    return next((name for name in names if isinstance(row.get(name), str) and row[name].strip()), "")


def prompt_name(row: dict[str, Any]) -> str:
    """Of what was asked: text, or chat messages."""
    return next((name for name in PROMPTS if is_prompt(row.get(name))), "")


def is_prompt(value: Any) -> bool:
    return (isinstance(value, str) and bool(value.strip())) or is_messages(decoded_messages(value))


def is_messages(value: Any) -> bool:
    """Whether it is a list of chat messages with roles."""
    return (
        isinstance(value, list)
        and bool(value)
        and all(
            isinstance(each, dict) and isinstance(each.get("role"), str) and each["role"].lower() in ROLES
            for each in value
        )
    )


def asked_messages(row: dict[str, Any], name: str) -> tuple[Messages, list[str]]:
    """The system text, the turns before and what was asked, with the names of the columns that hold them. name: of
    that of the prompt; empty for none. Raises InvalidRecord."""
    system = first_name(row, SYSTEMS)
    before = next((each for each in HISTORIES if row.get(each)), "")
    asked = message_column({"prompt": decoded_messages(row.get(name))}, "prompt")
    turns = earlier_turns(row[before], f"/{before}") if before else []
    messages = [*turns, *asked]
    if system and not any(message.get("role") == "system" for message in messages):
        messages.insert(0, {"role": "system", "content": row[system]})
    return messages, [each for each in (name, system, before) if each]


def has_readable_history(row: dict[str, Any]) -> bool:
    return all(
        is_messages(row[name]) or all(map(_is_pair, row[name]) if isinstance(row[name], list) else [False])
        for name in HISTORIES
        if row.get(name)
    )


def earlier_turns(value: Any, pointer: str) -> Messages:
    """Turns before the prompt: messages, or pairs of what was asked and answered. Raises InvalidRecord."""
    if is_messages(value):
        return message_column({"turns": value}, "turns")
    if not isinstance(value, list) or not all(map(_is_pair, value)):
        raise InvalidRecord("the turns before are messages, or pairs of two texts.", pointer=pointer)
    return [
        {"role": role, "content": text}
        for pair in value
        for role, text in zip(("user", "assistant"), pair, strict=True)
        if text
    ]


def _is_pair(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(isinstance(text, str) for text in value)
