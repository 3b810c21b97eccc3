"""Numbers in text that others send."""

from typing import Any

import pytest

from apps.core.number_parsing import signed_number, whole_number


@pytest.mark.parametrize(
    ("value", "number"),
    [
        *[
            ("7", 7),
            ("007", 7),
            (7, 7),
            ("9" * 18, 10**18 - 1),
            (str(2**63 - 1), 2**63 - 1),
            ("9" * 19, None),
            (2**63, None),
            ("9" * 20, None),
            ("9" * 5000, None),
        ],
        *[("", None), ("-7", None), (-7, None), ("٣", None), ("²", None), ("7.0", None), (" 7", None)],
        *[(True, None), (None, None), (7.0, None)],
    ],
)
def test_whole_numbers(value: Any, number: int | None) -> None:
    assert whole_number(value) == number


@pytest.mark.parametrize(
    ("value", "number"),
    [("-7", -7), (-7, -7), ("7", 7), ("--7", None), ("-", None), ("-" + "9" * 5000, None)],
)
def test_signed_numbers(value: Any, number: int | None) -> None:
    assert signed_number(value) == number
