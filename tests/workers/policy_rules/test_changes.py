"""Which rules of a new version are those of the version before."""

from workers.policy_rules.changes import RuleText, match_rules

OLD = [
    RuleText("You must ask before a refund.", "Refunds"),
    RuleText("A refund can be at most 50 dollars.", "Refunds"),
    RuleText("You must check the status.", "Cancel"),
    RuleText("You must check the status.", "Return"),
]


def test_same_reworded_new_and_moved() -> None:
    new = [
        RuleText("Never promise a date.", "Refunds"),
        RuleText("A refund can be at most 100 dollars.", "Refunds"),
        RuleText("You must check the status.", "Return"),
        RuleText("You must check the status.", "Cancel"),
        RuleText("You must ask before a refund.", "Payments"),
    ]
    assert match_rules(OLD, new) == [None, 1, 3, 2, 0]


def test_each_is_used_once() -> None:
    again = [RuleText("You must ask before a refund.", "Refunds")] * 2
    assert match_rules(OLD, again) == [0, None]
    assert match_rules([], again) == [None, None] and match_rules(OLD, []) == []
