"""A policy document becomes rules with their places, by its structure and its modal verbs."""

from pathlib import Path

import pytest

from benchmarks.policy_rule_lists import AIRLINE, RETAIL, matches, places
from benchmarks.policy_texts import airline_policy, retail_policy
from workers.policy_rules.splitting import FoundRule, split_rules

DOCUMENT = """# Refunds

Every order has a number.

## Returns

- Payment: The agent must ask before a refund. A refund can be
  at most 50 dollars, e.g. for one item.
- Do not promise a date unless the user asks.
1. When an order is late, you may offer a voucher.

```
You must not read this.
```

Is it clear? The following must hold:
"""


def test_places_scopes_and_categories() -> None:
    rules = split_rules(DOCUMENT)
    assert [rule.statement for rule in rules] == [
        "The agent must ask before a refund.",
        "A refund can be at most 50 dollars, e.g. for one item.",
        "Do not promise a date unless the user asks.",
        "When an order is late, you may offer a voucher.",
    ]
    assert [rule.category for rule in rules] == ["behavioural", "factual", "conditional", "conditional"]
    assert {rule.scope for rule in rules[:2]} == {"Refunds › Returns › Payment"}
    assert rules[3].scope == "Refunds › Returns"
    assert (
        DOCUMENT[rules[1].start : rules[1].end] == "A refund can be\n  at most 50 dollars, e.g. for one item."
    )
    assert rules[2].preconditions == ["unless the user asks"]
    assert rules[2].severity == "high" and rules[3].severity == "low"


@pytest.mark.parametrize("text", ["", "The sky is blue.", "# Only a heading must not be one"])
def test_what_has_no_rule(text: str) -> None:
    assert split_rules(text) == []


def measured(text: str, listed: list[tuple[str, str, str]]) -> tuple[float, float, float]:
    """precision, recall, and the share of matched rules whose category is right."""
    wanted, found = places(text, listed), split_rules(text)
    pairs = matches(wanted, [(rule.start, rule.end, rule.category) for rule in found])
    right = sum(own[2] == other[2] for own, other in pairs)
    return len(pairs) / len(found), len(pairs) / len(wanted), right / len(pairs)


def test_rules_of_the_airline(shared_data: Path) -> None:
    """45 rules listed by hand; patterns were written looking at this document."""
    precision, recall, categories = measured(airline_policy(), AIRLINE)
    assert precision >= 0.95 and recall == 1 and categories >= 0.95


def test_rules_of_the_held_out_domain(shared_data: Path) -> None:
    """37 rules listed by hand; no pattern was changed after these figures were seen."""
    precision, recall, categories = measured(retail_policy(), RETAIL)
    assert precision >= 0.94 and recall == 1 and categories >= 0.88


def test_a_long_document_takes_linear_time() -> None:
    """Characters that begin many patterns and end none."""
    for text in ("if " * 40_000, "A." * 60_000, "(" * 100_000, "for a " * 20_000, "the agent " * 12_000):
        assert all(isinstance(rule, FoundRule) for rule in split_rules(text))
