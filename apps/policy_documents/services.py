"""Policy documents: a version is stored and split into rules, which people edit, merge, accept and reject."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from django.db import transaction

from apps.accounts.actors import Actor, person_of
from apps.accounts.models import Project
from apps.accounts.services import record_audit
from apps.core.errors import Conflict, DomainError
from apps.core.jobs import job_queue
from apps.llm.models import LLMConnection
from apps.policy_documents.models import PolicyDocument, PolicyRule, PolicySplit, PolicyVersion
from apps.policy_documents.selectors import earlier_version, list_rules
from workers.errors import RewardError
from workers.policy_rules.changes import RuleText, match_rules
from workers.policy_rules.documents import require_document
from workers.policy_rules.splitting import MAX_RULES, FoundRule, split_rules
from workers.schema.decode import convert

ADVANCE = "apps.policy_documents.tasks.advance_policy_splits"
_State, _Change = PolicyRule.State, PolicyRule.Change


@transaction.atomic
def add_version(
    *,
    project: Project,
    name: str,
    text: str,
    file_name: str = "",
    llm_connection: LLMConnection | None = None,
    by: Actor,
) -> PolicyVersion:
    """The first version of a document, or the next one where the project has a document of this name. Its rules are
    found at once by its structure, or by a job where a language model lists them. Raises DomainError, and Conflict for
    the text of the newest version."""
    name = name.strip()
    if not 0 < len(name) <= 200:
        raise DomainError(
            "The name of a policy document must have between 1 and 200 characters.", pointer="/name"
        )
    if llm_connection is not None and llm_connection.project_id != project.pk:
        raise DomainError(
            "The LLM connection belongs to another project.", pointer="/llm_connection", status=404
        )
    try:
        text = require_document(text)
    except RewardError as error:
        raise DomainError(error.message, pointer=error.pointer, status=422) from None
    Project.objects.select_for_update(no_key=True).get(pk=project.pk)  # one writer of versions
    document, _ = PolicyDocument.objects.get_or_create(project=project, name=name)
    newest = document.versions.order_by("-number").first()
    if newest is not None and newest.text == text:
        raise Conflict(f"Version {newest.number} of {name} has exactly this text.", pointer="/text")
    version = PolicyVersion.objects.create(
        document=document,
        number=newest.number + 1 if newest else 1,
        text=text,
        file_name=file_name.replace("\\", "/").rpartition("/")[2][:200],
        created_by=person_of(by),
    )
    if llm_connection is None:
        store_rules(version, split_rules(text))
    else:
        PolicySplit.objects.create(
            project=project, version=version, llm_connection=llm_connection, created_by=person_of(by)
        )
        job_queue.nudge_on_commit(ADVANCE)
    record_audit(
        project=project,
        actor=by,
        verb="policy_documents.version_added",
        target=str(version)[:200],
        data={"characters": len(text), "llm_connection": llm_connection.name if llm_connection else ""},
    )
    return version


def store_rules(version: PolicyVersion, found: Sequence[FoundRule]) -> list[PolicyRule]:
    """Rules of a version that has none. What stands there as before keeps what people decided about it; a reworded
    rule waits for a person, with its criterion and its checks."""
    before = earlier_version(version)
    known = list(list_rules(before).exclude(state=_State.MERGED)) if before is not None else []
    quotes = [RuleText(" ".join(rule.quote.replace("**", "").split()), rule.scope) for rule in known]
    texts = [
        RuleText(" ".join(version.text[rule.start : rule.end].replace("**", "").split()), rule.scope)
        for rule in found
    ]
    rows = []
    for rule, text, place in zip(found, texts, match_rules(quotes, texts), strict=True):
        row = PolicyRule(version=version, **msgspec.structs.asdict(rule))
        if place is not None:
            _continue(row, known[place], is_same=quotes[place].statement == text.statement)
        rows.append(row)
    return PolicyRule.objects.bulk_create(rows)


def _continue(row: PolicyRule, earlier: PolicyRule, *, is_same: bool) -> None:
    row.earlier, row.criterion, row.checks = earlier, earlier.criterion, earlier.checks
    row.change = _Change.SAME if is_same else _Change.CHANGED
    if is_same:
        row.statement, row.category, row.severity = earlier.statement, earlier.category, earlier.severity
        row.preconditions, row.state = earlier.preconditions, earlier.state
        row.decided_at, row.decided_by = earlier.decided_at, earlier.decided_by


def store_found(split: PolicySplit, lines: Iterable[Mapping[str, Any]]) -> None:
    """All lines of `found.jsonl`, when a split ends. Raises ClaimLost."""
    with job_queue.fenced(split):
        found, problems = list[FoundRule](), dict[str, str]()
        for line in lines:
            if "problem" in line:
                problems[str(line["part"])] = line["problem"]
            else:
                found += [convert(rule, FoundRule) for rule in line["rules"]]
        found.sort(key=lambda rule: (rule.start, rule.end))
        if not split.version.rules.exists():
            store_rules(split.version, found[:MAX_RULES])
        split.result["problems"] = problems
        split.save(update_fields=["result"])


@transaction.atomic
def delete_document(*, document: PolicyDocument, by: Actor) -> None:
    """With its versions and rules; criteria stay."""
    record_audit(
        project=document.project,
        actor=by,
        verb="policy_documents.deleted",
        target=document.name,
        data={"versions": document.versions.count()},
    )
    document.delete()
