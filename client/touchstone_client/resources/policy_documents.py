"""`client.policy_documents`: written policies, their rules, and what people decide about them. Scope `admin`."""

import base64
import builtins
from collections.abc import Sequence
from dataclasses import field
from datetime import datetime
from typing import Any, ClassVar

from touchstone_client.api_objects import ApiObject, ObjectReader, api_object
from touchstone_client.calls import (
    Calls,
    DriverT,
    Flow,
    Request,
    flow_operation,
    given,
    list_operation,
    operation,
    read_nothing,
)
from touchstone_client.jobs import JobProgress, wait_for
from touchstone_client.listings import Pages
from touchstone_client.progress import Progress


@api_object
class PolicyDocument(ApiObject):
    """versions: newest first, {"number", "file_name", "characters", "created", "split"} each; split: the job in which a
    language model lists the rules, None where the document's structure gave them."""

    id: int
    name: str = ""
    created: datetime | None = None
    versions: list[dict[str, Any]] = field(default_factory=list)


@api_object
class PolicyRule(ApiObject):
    """quote: the words of the document from `start` to `end`. category: factual, behavioural or conditional. severity:
    low, medium or high. state: proposed, accepted, rejected or merged. change: new, changed or same, against the
    version before, whose rule is `earlier`. criterion: `name@version`, of an accepted rule."""

    id: int
    document: int = 0
    version: int = 0
    statement: str = ""
    quote: str = ""
    start: int = 0
    end: int = 0
    category: str = ""
    severity: str = ""
    scope: str = ""
    preconditions: list[str] = field(default_factory=list)
    checks: list[dict[str, Any]] = field(default_factory=list)
    state: str = ""
    change: str = ""
    earlier: int | None = None
    merged_into: int | None = None
    criterion: str | None = None
    decided: datetime | None = None


@api_object
class PolicyChanges(ApiObject):
    """judged_again: accepted rules of the version before that are reworded or gone: {"earlier", "rule", "uses",
    "rubrics"} each; uses: how many rows of each kind were judged by its criterion."""

    version: int
    judged_again: list[dict[str, Any]] = field(default_factory=list)


@api_object
class PolicyChecks(ApiObject):
    """checks: of the accepted rules, for the component `policy_checks` of an endpoint. conflicts: {"kind", "checks",
    "sentence"} each, of those that contradict each other or never decide."""

    version: int
    checks: list[dict[str, Any]] = field(default_factory=list)
    conflicts: list[dict[str, Any]] = field(default_factory=list)


@api_object
class PolicySplit(ApiObject):
    """The job in which a language model lists the rules of a version. number: within the project."""

    id: int
    number: int = 0
    document: int = 0
    version: int = 0
    state: str = ""
    progress: JobProgress = JobProgress()
    error: str = ""
    result: dict[str, Any] = field(default_factory=dict)
    created: datetime | None = None
    finished: datetime | None = None

    HIDDEN: ClassVar[tuple[str, ...]] = ("result",)


class PolicyDocuments(Calls[DriverT]):
    @operation
    def add(
        self,
        name: str,
        *,
        text: str | None = None,
        file: bytes | None = None,
        file_name: str | None = None,
        llm_connection: str | None = None,
    ) -> Request[PolicyDocument]:
        """A document, or a version of the one with this name. text: Markdown or plain text; or file: the bytes of a
        Markdown, HTML, text, PDF or DOCX file, and file_name: its name. llm_connection: has a language model list the
        rules, in the job `versions[0]["split"]`; without it they are found at once."""
        coded = base64.b64encode(file).decode() if file is not None else None
        body = {
            "name": name,
            **given(text=text, file=coded, file_name=file_name, llm_connection=llm_connection),
        }
        return Request("POST", self._path("policy-documents"), ObjectReader(PolicyDocument), json=body)

    @operation
    def get(self, document: int | PolicyDocument) -> Request[PolicyDocument]:
        return Request("GET", self._document(document), ObjectReader(PolicyDocument))

    @operation
    def delete(self, document: int | PolicyDocument) -> Request[None]:
        """With its versions and rules; criteria stay."""
        return Request("DELETE", self._document(document), read_nothing)

    @list_operation
    def list(self, *, page_size: int | None = None) -> Pages[PolicyDocument]:
        """Newest first."""
        return Pages(self._path("policy-documents"), ObjectReader(PolicyDocument), page_size=page_size)

    @list_operation
    def rules(
        self,
        document: int | PolicyDocument,
        *,
        version: int | None = None,
        state: str | None = None,
        page_size: int | None = None,
    ) -> Pages[PolicyRule]:
        """Newest first; of the newest version unless `version` is given."""
        return Pages(
            self._document(document, "rules"),
            ObjectReader(PolicyRule),
            params=given(version=version, state=state),
            page_size=page_size,
        )

    @operation
    def changes(
        self, document: int | PolicyDocument, *, version: int | None = None
    ) -> Request[PolicyChanges]:
        """What the newest version, or `version`, changed of accepted rules, and what has to be judged again."""
        path = self._document(document, "changes")
        return Request("GET", path, ObjectReader(PolicyChanges), params=given(version=version))

    @operation
    def checks(self, document: int | PolicyDocument, *, version: int | None = None) -> Request[PolicyChecks]:
        """Those of the accepted rules of the newest version, or of `version`."""
        path = self._document(document, "checks")
        return Request("GET", path, ObjectReader(PolicyChecks), params=given(version=version))

    @operation
    def rule(self, rule: int | PolicyRule) -> Request[PolicyRule]:
        return Request("GET", self._rule(rule), ObjectReader(PolicyRule))

    @operation
    def edit(
        self,
        rule: int | PolicyRule,
        *,
        statement: str | None = None,
        category: str | None = None,
        severity: str | None = None,
        scope: str | None = None,
        preconditions: Sequence[str] | None = None,
        checks: Sequence[dict[str, Any]] | None = None,
    ) -> Request[PolicyRule]:
        """What is left out stays. A person has to accept the rule again."""
        body = given(
            statement=statement,
            category=category,
            severity=severity,
            scope=scope,
            preconditions=None if preconditions is None else [*preconditions],
            checks=None if checks is None else [*checks],
        )
        return Request("PUT", self._rule(rule), ObjectReader(PolicyRule), json=body)

    @operation
    def accept(self, rule: int | PolicyRule) -> Request[PolicyRule]:
        """It becomes a criterion. It takes a member's key."""
        return Request("POST", self._rule(rule, "accept"), ObjectReader(PolicyRule))

    @operation
    def reject(self, rule: int | PolicyRule) -> Request[PolicyRule]:
        """It takes a member's key."""
        return Request("POST", self._rule(rule, "reject"), ObjectReader(PolicyRule))

    @operation
    def merge(
        self, document: int | PolicyDocument, rules: builtins.list[int], *, statement: str | None = None
    ) -> Request[PolicyRule]:
        """Rules of the newest version, into the first of them. statement: of the result; else theirs, joined."""
        body = {"rules": rules, **given(statement=statement)}
        return Request("POST", self._document(document, "merge"), ObjectReader(PolicyRule), json=body)

    @operation
    def split(self, split: int | PolicySplit) -> Request[PolicySplit]:
        return Request("GET", self._split(split), ObjectReader(PolicySplit))

    @operation
    def cancel(self, split: int | PolicySplit) -> Request[PolicySplit]:
        return Request("POST", self._split(split, "cancel"), ObjectReader(PolicySplit))

    @flow_operation
    def wait(
        self, split: int | PolicySplit, *, timeout: float | None = None, progress: Progress = False
    ) -> Flow[PolicySplit]:
        """Wait until it ends. Raises JobFailed unless that succeeded, TimeoutError after `timeout` seconds."""
        request = Request("GET", self._split(split), ObjectReader(PolicySplit))
        return wait_for(
            request, name=f"list {_key(split)} of policy rules", timeout=timeout, progress=progress
        )

    def _document(self, document: int | PolicyDocument, *rest: str) -> str:
        return self._path("policy-documents", _key(document), *rest)

    def _rule(self, rule: int | PolicyRule, *rest: str) -> str:
        return self._path("policy-rules", _key(rule), *rest)

    def _split(self, split: int | PolicySplit, *rest: str) -> str:
        return self._path("policy-splits", _key(split), *rest)


def _key(row: int | PolicyDocument | PolicyRule | PolicySplit) -> int:
    return row if isinstance(row, int) else row.id
