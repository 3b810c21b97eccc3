"""What people decide about rules: edit, merge, accept (a rule becomes a criterion) and reject."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import transaction
from django.utils import timezone

from apps.accounts.actors import Actor, require_person
from apps.accounts.services import record_audit
from apps.core.errors import Conflict, DomainError
from apps.policy_documents.models import PolicyRule
from apps.rubrics.models import Criterion
from apps.rubrics.services import CriterionDraft, save_criterion
from workers.errors import RewardError
from workers.policy_rules.splitting import MAX_RULE_CHARACTERS, MAX_SCOPE_CHARACTERS
from workers.schema.policy_checks import check_values, convert_check, require_checks

_State = PolicyRule.State
FOLLOWED, BROKEN, NOT_CONCERNED = "Followed", "Violated", "Does not apply"
ANSWERS = [
    {"name": FOLLOWED, "definition": "The agent kept to the rule where it applies."},
    {"name": BROKEN, "definition": "The agent did what the rule forbids, or left out what it demands."},
    {"name": NOT_CONCERNED, "definition": "Nothing in the trajectory concerns the rule."},
]
MAX_PRECONDITIONS = 10
_NAME_CHARACTERS = 120


@transaction.atomic
def edit_rule(*, rule: PolicyRule, changes: Mapping[str, Any], by: Actor) -> PolicyRule:
    """changes: fields among statement, category, severity, scope, preconditions and checks (decoded JSON). An accepted
    rule waits for a person again. Raises DomainError at the bad field."""
    locked = _lock(rule)
    _require_open(locked)
    for name, value in _checked(changes).items():
        setattr(locked, name, value)
    locked.state, locked.decided_at, locked.decided_by = _State.PROPOSED, None, None
    locked.save()
    _record(locked, by, "rule_edited")
    return locked


@transaction.atomic
def accept_rule(*, rule: PolicyRule, by: Actor) -> PolicyRule:
    """It becomes a criterion of the project, or a new version of the criterion that the rule before it had. Raises
    Forbidden where no person accepts it, Conflict where it is accepted already."""
    person = require_person(by, "accept a rule")
    locked = _lock(rule)
    _require_open(locked)
    if locked.state == _State.ACCEPTED:
        raise Conflict("This rule is accepted already.")
    locked.criterion = save_criterion(
        project=locked.version.document.project,
        draft=CriterionDraft(
            name=_criterion_name(locked),
            definition=_definition(locked),
            answer_type=Criterion.AnswerType.CATEGORY,
            categories=ANSWERS,
        ),
        origin=Criterion.Origin.POLICY,
    )
    locked.state, locked.decided_at, locked.decided_by = _State.ACCEPTED, timezone.now(), person
    locked.save()
    _record(locked, by, "rule_accepted")
    return locked


@transaction.atomic
def reject_rule(*, rule: PolicyRule, by: Actor) -> PolicyRule:
    """Its criterion stays, since scores may refer to it. Raises Forbidden, Conflict."""
    person = require_person(by, "reject a rule")
    locked = _lock(rule)
    _require_open(locked)
    if locked.state == _State.REJECTED:
        raise Conflict("This rule is rejected already.")
    locked.state, locked.decided_at, locked.decided_by = _State.REJECTED, timezone.now(), person
    locked.save()
    _record(locked, by, "rule_rejected")
    return locked


@transaction.atomic
def merge_rules(*, rules: Sequence[PolicyRule], statement: str = "", by: Actor) -> PolicyRule:
    """One rule of several of a version: the first of them, which waits for a person again, with the preconditions and
    checks of all; the others are merged into it. statement: of the result; empty for theirs, joined. Raises
    DomainError."""
    keys = sorted({rule.pk for rule in rules})
    rows = PolicyRule.objects.select_for_update(of=("self",)).select_related("version__document__project")
    locked = list(rows.filter(pk__in=keys).order_by("start", "pk"))
    if len(locked) < 2:
        raise DomainError("Choose at least two rules to merge.", pointer="/rules")
    if len({rule.version_id for rule in locked}) > 1:
        raise DomainError("Rules of different versions cannot be merged.", pointer="/rules")
    for rule in locked:
        _require_open(rule)
    first, *others = locked
    joined = statement.strip() or " ".join(rule.statement for rule in locked)
    preconditions = list(dict.fromkeys(each for rule in locked for each in rule.preconditions))
    changes = {"statement": joined, "preconditions": preconditions[:MAX_PRECONDITIONS]}
    for name, value in _checked(changes).items():
        setattr(first, name, value)
    first.checks = [check for rule in locked for check in rule.checks]
    severities = list(PolicyRule.Severity)
    first.severity = max(
        (rule.severity for rule in locked), key=lambda each: severities.index(PolicyRule.Severity(each))
    )
    first.state, first.decided_at, first.decided_by = _State.PROPOSED, None, None
    first.save()
    for rule in others:
        rule.state, rule.merged_into = _State.MERGED, first
        rule.decided_at = rule.decided_by = None
        rule.save()
        PolicyRule.objects.filter(merged_into=rule).update(merged_into=first)
    _record(first, by, "rules_merged")
    return first


def _checked(changes: Mapping[str, Any]) -> dict[str, Any]:
    found = dict(changes)
    for name, choices in (("category", PolicyRule.Category), ("severity", PolicyRule.Severity)):
        if name in found and found[name] not in choices.values:
            raise DomainError(
                f"{found[name]!r} is none of {', '.join(choices.values)}.", pointer=f"/{name}", status=422
            )
    if "statement" in found:
        found["statement"] = " ".join(str(found["statement"]).split())
        if not 0 < len(found["statement"]) <= MAX_RULE_CHARACTERS:
            raise DomainError(
                f"A rule must have between 1 and {MAX_RULE_CHARACTERS:,} characters.",
                pointer="/statement",
                status=422,
            )
    if len(found.get("scope", "")) > MAX_SCOPE_CHARACTERS:
        raise DomainError(
            f"A scope can have at most {MAX_SCOPE_CHARACTERS} characters.", pointer="/scope", status=422
        )
    if "checks" in found:
        found["checks"] = _checked_checks(found["checks"])
    if "preconditions" in found:
        conditions = [" ".join(str(each).split()) for each in found["preconditions"]]
        found["preconditions"] = [each for each in conditions if each]
        if len(found["preconditions"]) > MAX_PRECONDITIONS or any(len(each) > 500 for each in conditions):
            raise DomainError(
                f"A rule can have at most {MAX_PRECONDITIONS} preconditions of at most 500 characters each.",
                pointer="/preconditions",
                status=422,
            )
    return found


def _checked_checks(rows: Sequence[Any]) -> list[Any]:
    """As they are stored: without what has its default."""
    try:
        checks = [convert_check(row, place) for place, row in enumerate(rows)]
        require_checks(checks)
    except RewardError as error:
        raise DomainError(error.message, pointer=f"/checks{error.pointer or ''}", status=422) from None
    return [check_values(check) for check in checks]


def _criterion_name(rule: PolicyRule) -> str:
    """Of the criterion it has; else the beginning of the statement, with a number where another criterion has it."""
    if rule.criterion is not None:
        return rule.criterion.name
    words = rule.statement
    if len(words) > _NAME_CHARACTERS:
        words = f"{words[:_NAME_CHARACTERS].rsplit(' ', 1)[0]}…"
    names = Criterion.objects.filter(project=rule.version.document.project_id, name__startswith=words)
    taken = set(names.values_list("name", flat=True))
    name, number = words, 1
    while name in taken:
        number += 1
        name = f"{words} ({number})"
    return name


def _definition(rule: PolicyRule) -> str:
    quotes = [rule.quote, *(each.quote for each in rule.merged.select_related("version"))]
    lines = [rule.statement]
    if rule.preconditions:
        lines.append(f"Applies: {'; '.join(rule.preconditions)}.")
    if rule.scope:
        lines.append(f"Scope: {rule.scope}.")
    source = " … ".join(" ".join(quote.split()) for quote in quotes)
    lines.append(f"Source, {rule.version.document.name}: “{source}”")
    return "\n".join(lines)


def _require_open(rule: PolicyRule) -> None:
    if rule.state == _State.MERGED:
        raise Conflict("This rule was merged into another one; decide about that one.")
    if rule.version.number != rule.version.document.newest.number:
        raise Conflict("This rule is of an earlier version of the document; decide about the newest one.")


def _lock(rule: PolicyRule) -> PolicyRule:
    rows = PolicyRule.objects.select_for_update(of=("self",)).select_related(
        "version__document__project", "criterion"
    )
    return rows.get(pk=rule.pk)


def _record(rule: PolicyRule, by: Actor, verb: str) -> None:
    record_audit(
        project=rule.version.document.project,
        actor=by,
        verb=f"policy_documents.{verb}",
        target=str(rule.version)[:200],
        data={"rule": rule.pk, "state": rule.state},
    )
