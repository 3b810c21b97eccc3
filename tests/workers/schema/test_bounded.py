"""JSON of servers is refused by its bytes, before it is anything in memory."""

import pytest

from tests.core.hostile_server import DOCUMENTS
from workers.schema import bounded


def test_a_document_is_read() -> None:
    assert bounded.loads(b'{"choices": [{"message": {"content": "\\u00e9 [[[["}}]}')["choices"][0] == {
        "message": {"content": "é [[[["}
    }


@pytest.mark.parametrize(
    "what", [each for each in DOCUMENTS if each not in ("a lone surrogate", "not a number", "another shape")]
)
def test_what_is_hostile_is_a_value_error(what: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        bounded.loads(DOCUMENTS[what])
