"""Policy documents and their rules over the JSON API."""

import base64
import binascii
from datetime import datetime
from typing import Annotated, Any, Literal

from ninja import Field, Router, Schema, Status

from apps.accounts.access import project_of_key
from apps.accounts.auth import KeyRequest
from apps.accounts.models import Project, Scope
from apps.core.errors import DomainError
from apps.core.http.api import DEFAULT_LIMIT, paginate
from apps.core.http.api_schemas import Cursor, JobProgress, JobStateName, JsonObject, Limit, StrictBody
from apps.core.http.api_scopes import needs
from apps.core.jobs.job_queue import request_cancel
from apps.llm.selectors import get_llm_connection
from apps.policy_documents import rule_services, selectors, services
from apps.policy_documents.models import PolicyDocument, PolicyRule, PolicySplit, PolicyVersion
from apps.policy_documents.reading import read_upload
from workers.policy_rules.conflicts import find_conflicts
from workers.policy_rules.splitting import MAX_DOCUMENT_CHARACTERS, MAX_RULE_CHARACTERS, MAX_SCOPE_CHARACTERS
from workers.schema.policy_checks import MAX_CHECKS, check_values

router = Router()
_ADMIN = needs(Scope.ADMIN)
_DECISION = needs(Scope.ADMIN, person=True)
_DOCUMENT = "/projects/{slug}/policy-documents/{int:pk}"
_RULE = "/projects/{slug}/policy-rules/{int:pk}"
_SPLIT = "/projects/{slug}/policy-splits/{int:pk}"
CategoryName = Literal["factual", "behavioural", "conditional"]
SeverityName = Literal["low", "medium", "high"]
RuleStateName = Literal["proposed", "accepted", "rejected", "merged"]


CheckJson = Annotated[JsonObject, Field(description="a check, as docs/policy-documents.md describes them")]


class PolicyDocumentIn(StrictBody):
    name: str = Field(
        min_length=1, max_length=200, description="of a document; one that exists gets a new version"
    )
    text: str | None = Field(None, max_length=MAX_DOCUMENT_CHARACTERS, description="Markdown or plain text")
    file: str | None = Field(None, description="in place of `text`: a file in base64")
    file_name: str = Field("", max_length=200, description="of `file`; its ending says what it is")
    llm_connection: str | None = Field(
        None,
        description="has a language model list the rules; without it, the structure of the document does",
    )


class PolicyVersionOut(Schema):
    number: int
    file_name: str
    characters: int
    created: datetime
    split: int | None = Field(description="the job in which a language model lists its rules")


class PolicyDocumentOut(Schema):
    id: int
    name: str
    created: datetime
    versions: list[PolicyVersionOut] = Field(description="newest first")


class PolicyDocumentPage(Schema):
    items: list[PolicyDocumentOut]
    next: str | None


class PolicyRuleIn(StrictBody):
    statement: str | None = Field(None, min_length=1, max_length=MAX_RULE_CHARACTERS)
    category: CategoryName | None = None
    severity: SeverityName | None = None
    scope: str | None = Field(None, max_length=MAX_SCOPE_CHARACTERS)
    preconditions: list[str] | None = Field(None, max_length=rule_services.MAX_PRECONDITIONS)
    checks: list[CheckJson] | None = Field(
        None, max_length=MAX_CHECKS, description="what it demands of tool calls: docs/policy-documents.md"
    )


class PolicyRuleOut(Schema):
    id: int
    document: int
    version: int
    statement: str
    quote: str = Field(description="the words of the document from `start` to `end`")
    start: int = Field(description="in characters of the text of the version")
    end: int
    category: CategoryName
    severity: SeverityName
    scope: str
    preconditions: list[str]
    checks: list[CheckJson]
    state: RuleStateName
    change: Literal["new", "changed", "same"] = Field(description="against the version before")
    earlier: int | None = Field(description="the rule of the version before that it repeats or rewords")
    merged_into: int | None
    criterion: str | None = Field(description="the criterion that it became when it was accepted")
    decided: datetime | None


class PolicyRulePage(Schema):
    items: list[PolicyRuleOut]
    next: str | None


class PolicyMergeIn(StrictBody):
    rules: list[int] = Field(min_length=2, max_length=100)
    statement: str = Field("", max_length=MAX_RULE_CHARACTERS, description="empty: theirs, joined")


class JudgedAgainOut(Schema):
    earlier: PolicyRuleOut
    rule: PolicyRuleOut | None = Field(description="None where the rule is gone")
    uses: dict[str, int] = Field(description="how many rows of each kind were judged by its criterion")
    rubrics: list[str]


class PolicyChangesOut(Schema):
    version: int
    judged_again: list[JudgedAgainOut]


class CheckConflictOut(Schema):
    kind: Literal["contradiction", "unreachable"]
    checks: list[str]
    sentence: str


class PolicyChecksOut(Schema):
    version: int
    checks: list[CheckJson] = Field(description="for the component `policy_checks` of an endpoint")
    conflicts: list[CheckConflictOut]


class PolicySplitOut(Schema):
    id: int
    number: int = Field(description="within the project")
    document: int
    version: int
    state: JobStateName
    progress: JobProgress
    error: str
    result: JsonObject = Field(description="usage, prompts; problems: why a part got no rules, by its place")
    created: datetime
    finished: datetime | None


@router.get(
    "/projects/{slug}/policy-documents",
    response=PolicyDocumentPage,
    summary="List policy documents",
    openapi_extra=_ADMIN,
)
def list_policy_documents(
    request: KeyRequest, slug: str, cursor: Cursor = None, limit: Limit = DEFAULT_LIMIT
) -> dict[str, Any]:
    """Newest first."""
    page, following = paginate(selectors.list_documents(_project(request, slug)), cursor=cursor, limit=limit)
    return {"items": [policy_document_out(document) for document in page], "next": following}


@router.post(
    "/projects/{slug}/policy-documents",
    response={201: PolicyDocumentOut},
    operation_id="add_policy_document",
    summary="Add a policy document or a version of it",
    openapi_extra=_ADMIN,
)
def add(request: KeyRequest, slug: str, body: PolicyDocumentIn) -> Status:
    """Its rules are found at once, or by a job where a language model lists them."""
    project = _project(request, slug)
    connection = get_llm_connection(project, body.llm_connection) if body.llm_connection else None
    version = services.add_version(
        project=project,
        name=body.name,
        text=_text(body),
        file_name=body.file_name,
        llm_connection=connection,
        by=request.auth,
    )
    return Status(201, policy_document_out(version.document))


@router.get(
    _DOCUMENT,
    response=PolicyDocumentOut,
    operation_id="get_policy_document",
    summary="A policy document",
    openapi_extra=_ADMIN,
)
def read(request: KeyRequest, slug: str, pk: int) -> dict[str, Any]:
    return policy_document_out(_document(request, slug, pk))


@router.delete(
    _DOCUMENT,
    response={204: None},
    operation_id="delete_policy_document",
    summary="Delete a policy document",
    openapi_extra=_ADMIN,
)
def delete(request: KeyRequest, slug: str, pk: int) -> Status:
    """With its versions and rules; criteria stay."""
    services.delete_document(document=_document(request, slug, pk), by=request.auth)
    return Status(204, None)


@router.get(
    _DOCUMENT + "/rules",
    response=PolicyRulePage,
    operation_id="list_policy_rules",
    summary="List rules of a policy document",
    openapi_extra=_ADMIN,
)
def rules(
    request: KeyRequest,
    slug: str,
    pk: int,
    version: int | None = None,
    state: RuleStateName | None = None,
    cursor: Cursor = None,
    limit: Limit = DEFAULT_LIMIT,
) -> dict[str, Any]:
    """Newest first; those of the newest version where `version` is left out."""
    found = selectors.get_version(_document(request, slug, pk), version)
    rows = selectors.list_rules(found, state or "").order_by("-pk")
    page, following = paginate(rows, cursor=cursor, limit=limit)
    return {"items": [policy_rule_out(rule) for rule in page], "next": following}


@router.get(
    _DOCUMENT + "/changes",
    response=PolicyChangesOut,
    operation_id="get_policy_changes",
    summary="What a version of a policy document changed",
    openapi_extra=_ADMIN,
)
def changes(request: KeyRequest, slug: str, pk: int, version: int | None = None) -> dict[str, Any]:
    """Accepted rules of the version before that are reworded or gone, and what was judged by them."""
    found = selectors.get_version(_document(request, slug, pk), version)
    rows = [
        {
            "earlier": policy_rule_out(each.earlier),
            "rule": policy_rule_out(each.rule) if each.rule is not None else None,
            "uses": each.uses,
            "rubrics": each.rubrics,
        }
        for each in selectors.judged_again(found)
    ]
    return {"version": found.number, "judged_again": rows}


@router.get(
    _DOCUMENT + "/checks",
    response=PolicyChecksOut,
    operation_id="get_policy_checks",
    summary="Checks of the accepted rules of a policy document",
    openapi_extra=_ADMIN,
)
def checks(request: KeyRequest, slug: str, pk: int, version: int | None = None) -> dict[str, Any]:
    """In the order of the document, and which of them contradict each other or never decide."""
    found = selectors.get_version(_document(request, slug, pk), version)
    own = selectors.accepted_checks(found)
    conflicts = [
        {"kind": each.kind, "checks": list(each.checks), "sentence": each.sentence}
        for each in find_conflicts(own)
    ]
    return {"version": found.number, "checks": [check_values(check) for check in own], "conflicts": conflicts}


@router.post(
    _DOCUMENT + "/merge",
    response=PolicyRuleOut,
    operation_id="merge_policy_rules",
    summary="Merge rules of a policy document",
    openapi_extra=_ADMIN,
)
def merge(request: KeyRequest, slug: str, pk: int, body: PolicyMergeIn) -> dict[str, Any]:
    """Into the first of them, which a person has to accept again."""
    document = _document(request, slug, pk)
    found = list(selectors.list_rules(document.newest).filter(pk__in=body.rules))
    if missing := set(body.rules) - {rule.pk for rule in found}:
        raise DomainError(
            f"The newest version of this document has no rule {min(missing)}.", pointer="/rules", status=422
        )
    return policy_rule_out(rule_services.merge_rules(rules=found, statement=body.statement, by=request.auth))


@router.get(
    _RULE,
    response=PolicyRuleOut,
    operation_id="get_policy_rule",
    summary="A rule of a policy document",
    openapi_extra=_ADMIN,
)
def read_rule(request: KeyRequest, slug: str, pk: int) -> dict[str, Any]:
    return policy_rule_out(_rule(request, slug, pk))


@router.put(
    _RULE,
    response=PolicyRuleOut,
    operation_id="edit_policy_rule",
    summary="Edit a rule of a policy document",
    openapi_extra=_ADMIN,
)
def edit(request: KeyRequest, slug: str, pk: int, body: PolicyRuleIn) -> dict[str, Any]:
    """What is left out stays. A person has to accept the rule again."""
    given = {name: value for name, value in body.dict().items() if value is not None}
    return policy_rule_out(
        rule_services.edit_rule(rule=_rule(request, slug, pk), changes=given, by=request.auth)
    )


@router.post(
    _RULE + "/accept",
    response=PolicyRuleOut,
    operation_id="accept_policy_rule",
    summary="Accept a rule of a policy document",
    openapi_extra=_DECISION,
)
def accept(request: KeyRequest, slug: str, pk: int) -> dict[str, Any]:
    """It becomes a criterion with the origin `policy`."""
    return policy_rule_out(rule_services.accept_rule(rule=_rule(request, slug, pk), by=request.auth))


@router.post(
    _RULE + "/reject",
    response=PolicyRuleOut,
    operation_id="reject_policy_rule",
    summary="Reject a rule of a policy document",
    openapi_extra=_DECISION,
)
def reject(request: KeyRequest, slug: str, pk: int) -> dict[str, Any]:
    return policy_rule_out(rule_services.reject_rule(rule=_rule(request, slug, pk), by=request.auth))


@router.get(
    _SPLIT,
    response=PolicySplitOut,
    operation_id="get_policy_split",
    summary="The job in which a language model lists rules",
    openapi_extra=_ADMIN,
)
def read_split(request: KeyRequest, slug: str, pk: int) -> dict[str, Any]:
    return policy_split_out(selectors.get_split(_project(request, slug), pk))


@router.post(
    _SPLIT + "/cancel",
    response=PolicySplitOut,
    operation_id="cancel_policy_split",
    summary="Cancel the job in which a language model lists rules",
    openapi_extra=_ADMIN,
)
def cancel(request: KeyRequest, slug: str, pk: int) -> dict[str, Any]:
    split = selectors.get_split(_project(request, slug), pk)
    request_cancel(split)
    return policy_split_out(split)


def policy_document_out(document: PolicyDocument) -> dict[str, Any]:
    versions = document.versions.prefetch_related("splits").order_by("-number")
    return {
        "id": document.pk,
        "name": document.name,
        "created": document.created_at,
        "versions": [_version_out(version) for version in versions],
    }


def _version_out(version: PolicyVersion) -> dict[str, Any]:
    splits = [split.pk for split in version.splits.all()]
    return {
        "number": version.number,
        "file_name": version.file_name,
        "characters": len(version.text),
        "created": version.created_at,
        "split": max(splits, default=None),
    }


def policy_rule_out(rule: PolicyRule) -> dict[str, Any]:
    names = (
        "statement",
        "quote",
        "start",
        "end",
        "category",
        "severity",
        "scope",
        "preconditions",
        "checks",
        "state",
    )
    return {
        "id": rule.pk,
        "document": rule.version.document_id,
        "version": rule.version.number,
        **{name: getattr(rule, name) for name in names},
        "change": rule.change,
        "earlier": rule.earlier_id,
        "merged_into": rule.merged_into_id,
        "criterion": f"{rule.criterion.name}@{rule.criterion.version}" if rule.criterion else None,
        "decided": rule.decided_at,
    }


def policy_split_out(split: PolicySplit) -> dict[str, Any]:
    names = ("number", "state", "progress", "error", "result")
    return {
        "id": split.pk,
        "document": split.version.document_id,
        "version": split.version.number,
        **{name: getattr(split, name) for name in names},
        "created": split.created_at,
        "finished": split.finished_at,
    }


def _text(body: PolicyDocumentIn) -> str:
    if (body.text is None) == (body.file is None):
        raise DomainError("Give `text` or `file`, one of the two.", pointer="/text", status=422)
    if body.file is None:
        return body.text or ""
    try:
        data = base64.b64decode(body.file, validate=True)
    except (binascii.Error, ValueError):
        raise DomainError("The file is not base64.", pointer="/file", status=422) from None
    return read_upload(body.file_name, data)


def _project(request: KeyRequest, slug: str) -> Project:
    return project_of_key(request.auth, slug, Scope.ADMIN)


def _document(request: KeyRequest, slug: str, pk: int) -> PolicyDocument:
    return selectors.get_document(_project(request, slug), pk)


def _rule(request: KeyRequest, slug: str, pk: int) -> PolicyRule:
    return selectors.get_rule(_project(request, slug), pk)
