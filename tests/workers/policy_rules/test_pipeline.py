"""The parts of a document that a language model reads, and the places of its quotes."""

from workers.policy_rules.pipeline import document_parts, quote_places


def test_parts_are_the_sections() -> None:
    text = "Before.\n# A\nOne.\n## B\nTwo.\n# C\nThree.\n"
    parts = document_parts(text)
    assert [(part.scope, part.text.strip()) for part in parts] == [
        ("", "Before."),
        ("A", "One."),
        ("A › B", "Two."),
        ("C", "Three."),
    ]
    assert all(text[part.start :].startswith(part.text) for part in parts)


def test_a_long_section_is_cut_without_a_loss() -> None:
    text = (
        "# A\n" + "\n\n".join(f"Paragraph {number}. " + "word " * 300 for number in range(12)) + "x" * 20_000
    )
    parts = document_parts(text)
    assert len(parts) > 5 and max(len(part.text) for part in parts) <= 6000
    assert "".join(part.text for part in parts) == text[3:]


def test_quotes_are_found_once_each() -> None:
    text = "You must ask.\nYou\n  must ask. Never."
    assert quote_places(text, ["You must ask.", "You must  ask.", "You must ask.", "never."]) == [
        (0, 13),
        (14, 29),
        None,
        None,
    ]
