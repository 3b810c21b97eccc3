import pytest

from apps.core.errors import DomainError
from apps.core.version_names import VersionedName, check_slug, parse_name


@pytest.mark.parametrize(
    ("text", "project", "expected"),
    [
        ("desk/first@3", None, VersionedName("desk", "first", 3)),
        ("desk/first", None, VersionedName("desk", "first")),
        ("first@3", "desk", VersionedName("desk", "first", 3)),
        ("first", "desk", VersionedName("desk", "first")),
        ("desk/first@12", "desk", VersionedName("desk", "first", 12)),
    ],
)
def test_project_and_version_may_be_left_out(text: str, project: str | None, expected: VersionedName) -> None:
    assert parse_name(text, project=project) == expected


@pytest.mark.parametrize("text", ["", "a/b/c", "desk/first@0", "desk/first@x", "desk/fi rst", "@3", "../x"])
def test_what_is_no_name(text: str) -> None:
    with pytest.raises(DomainError, match="is no name"):
        parse_name(text, project="desk")


def test_a_project_must_come_from_somewhere() -> None:
    with pytest.raises(DomainError, match="names no project; write project/first"):
        parse_name("first")


def test_another_project_is_refused() -> None:
    with pytest.raises(DomainError, match="belongs to the project other, this is desk"):
        parse_name("other/first", project="desk")


def test_a_name_prints_as_it_is_read() -> None:
    assert str(parse_name("desk/first@3")) == "desk/first@3"
    assert str(parse_name("desk/first")) == "desk/first"


def test_new_names_are_slugs() -> None:
    assert check_slug("first-2", what="dataset") == "first-2"
    with pytest.raises(DomainError, match="cannot be the name of a dataset"):
        check_slug("first@2", what="dataset")
