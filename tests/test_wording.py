"""Words that must not come back into what people read: pages, forms, messages, errors, command help and docs.

docs/glossary.md says which words the product uses. Only text is looked at: of Python the string literals with a space
in them, without docstrings.
"""

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests import source_code

ROOT = Path(__file__).parents[1]

# The pattern, and what to write instead.
BANNED_WORDS = {
    r"anew": "again",
    r"beside": "next to, with",
    r"mend(s|ed|ing)?": "fix",
    r"(no|some|every|any)body": "no one, someone, everyone, anyone; or name the role",
    r"whoever": "name the role, or: anyone who",
    r"none said": "not set",
    r"by (it|them)(self|selves)": "automatically",
    r"of (its|their) own": "own, separate",
    r"at once": "immediately, at the same time",
    r"for good": "permanently",
    r"told apart|tell apart|tells apart": "distinguish",
    r"(held|hold|holds|holding) (it |them )?against": "compare with",
    r"so many": "N, the number of",
    r"taken up": "resumed",
    r"(lay|lays|laid) over": "overlay",
    r"(hand|hands|handed) (it |them )?in": "submit",
    r"as it (is|was) said|what (was|is) said|what people said": "feedback, annotations",
    r"she|her|hers|he|him|his": "they, their, or name the role",
    r"liking for|leans": "bias",
    r"anyhow": "in any case",
    r"lately": "recently",
}
PATTERN = re.compile(rf"(?<![\w/-])({'|'.join(BANNED_WORDS)})(?![\w-])", re.IGNORECASE)

# Files whose words are data rather than interface: a part of the path, and why.
ALLOWED_FILES = {
    "apps/demo/world/": "conversations and customers of the sample data",
    "apps/demo/phrases.py": "conversations of the sample data",
    "apps/demo/remarks.py": "comments of the simulated annotators",
    "docs/glossary.md": "lists these words",
    "apps/trajectories/formats/": "reads what other programs wrote",
}
# Phrases in which a word is right: the phrase, and why.
ALLOWED_PHRASES = {
    "unprivileged user (nobody)": "the name of a Unix user",
}


def find_banned_words(text: str) -> list[tuple[int, str]]:
    """The lines and words of text that people read."""
    for phrase in ALLOWED_PHRASES:
        text = text.replace(phrase, " " * len(phrase))
    return [
        (number, match[0])
        for number, line in enumerate(text.splitlines(), start=1)
        for match in PATTERN.finditer(line)
    ]


def read_string_literals(nodes: Sequence[ast.AST]) -> Iterator[tuple[int, str]]:
    """Line and text of the literals of Python source that are prose. Parts of an f-string are literals too."""
    docstrings = {
        id(node.body[0].value)
        for node in nodes
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
        and isinstance(node.body[0].value, ast.Constant)
    }
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.lineno, node.value if " " in node.value else ""


def find_in_nodes(nodes: Sequence[ast.AST]) -> list[tuple[int, str]]:
    return [(line, word) for line, text in read_string_literals(nodes) for _, word in find_banned_words(text)]


def find_in_python(path: Path) -> list[tuple[int, str]]:
    return find_in_nodes(source_code.nodes(path))


def find_in_template(path: Path) -> list[tuple[int, str]]:
    return find_in_tags(source_code.read_text(path))


def find_in_tags(source: str) -> list[tuple[int, str]]:
    """Comments and the names in tags are not read by anyone."""
    source = re.sub(r"{#.*?#}|{%.*?%}|{{.*?}}", " ", source)
    return find_banned_words(source)


def find_in_page(path: Path) -> list[tuple[int, str]]:
    return find_in_markdown(source_code.read_text(path))


def find_in_markdown(source: str) -> list[tuple[int, str]]:
    """Without code, and without the targets of links."""
    source = re.sub(r"```.*?```", lambda match: "\n" * match[0].count("\n"), source, flags=re.DOTALL)
    source = re.sub(r"`[^`]*`|\]\([^)]*\)", " ", source)
    return find_banned_words(source)


SCANNERS = (
    ("templates", "*.html", find_in_template),
    ("templates", "*.txt", find_in_template),
    ("apps", "*.py", find_in_python),
    ("workers", "*.py", find_in_python),
    ("client", "*.py", find_in_python),
    ("docs", "*.md", find_in_page),
)


def find_all() -> list[str]:
    found = [f"README.md:{line}: {word}" for line, word in find_in_page(ROOT / "README.md")]
    for folder, pattern, scan in SCANNERS:
        for path in sorted((ROOT / folder).rglob(pattern)):
            name = str(path.relative_to(ROOT))
            if "/migrations/" in name or name.startswith(tuple(ALLOWED_FILES)):
                continue
            found += [f"{name}:{line}: {word}" for line, word in scan(path)]
    return found


def test_banned_words_are_not_in_interface_text() -> None:
    assert find_all() == []


def test_every_allowance_is_used() -> None:
    assert [name for name in ALLOWED_FILES if not (ROOT / name).exists()] == []
    text = "".join(
        source_code.read_text(path)
        for folder, pattern, _ in SCANNERS
        for path in (ROOT / folder).rglob(pattern)
        if "/migrations/" not in str(path)
    )
    assert [phrase for phrase in ALLOWED_PHRASES if phrase not in text] == []


@pytest.mark.parametrize(
    ("source", "word"),
    [
        ('error("Nobody judges this.")', "Nobody"),
        ('label = f"Freeze {name} anew"', "anew"),
        ('help_text="How often she chose it."', "she"),
    ],
)
def test_a_planted_word_in_python_is_found(source: str, word: str) -> None:
    assert find_in_nodes([*ast.walk(ast.parse(source))]) == [(1, word)]


def test_docstrings_names_and_keys_are_not_interface_text() -> None:
    source = '"""Judge it anew."""\nbeside = data["beside"]\n'
    assert find_in_nodes([*ast.walk(ast.parse(source))]) == []


def test_a_planted_word_in_a_template_is_found() -> None:
    assert find_in_tags("<h1>{# anew #}Judge\nit {{ beside }} by itself</h1>") == [(2, "by itself")]


def test_a_planted_word_in_a_page_is_found() -> None:
    assert find_in_markdown("# Fix it\n\n```\nanew\n```\nRun `beside`, then mend it.") == [(6, "mend")]
