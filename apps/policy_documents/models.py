"""Policy documents in versions, the rules found in each, and the jobs in which a language model lists them."""

from django.db import models
from django.db.models import Q

from apps.accounts.models import Project, User
from apps.accounts.project_numbers import ProjectNumberField
from apps.core.jobs.job_queue import Job
from apps.llm.models import LLMConnection
from apps.rubrics.models import Criterion


class PolicyDocument(models.Model):
    """A written policy of a company. Its text is in its versions."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="policy_documents")
    name = models.CharField(max_length=200)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "name"], name="policy_document_name")]

    def __str__(self) -> str:
        return self.name

    @property
    def newest(self) -> "PolicyVersion":
        return self.versions.latest("number")


class PolicyVersion(models.Model):
    """text: as the rules quote it, Markdown for a document of another kind. file_name: empty for typed text."""

    document = models.ForeignKey(PolicyDocument, models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    text = models.TextField()
    file_name = models.CharField(max_length=200, blank=True)
    created_by = models.ForeignKey(User, models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["document", "number"], name="policy_version_number")]

    def __str__(self) -> str:
        return f"{self.document.name}@{self.number}"


class PolicySplit(Job):
    """A language model lists the rules of a version. result: {"usage", "prompts", "problems": {place: sentence}}."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="policy_splits")
    number = ProjectNumberField()
    version = models.ForeignKey(PolicyVersion, models.CASCADE, related_name="splits")
    llm_connection = models.ForeignKey(LLMConnection, models.SET_NULL, null=True, related_name="+")
    result = models.JSONField(default=dict)
    created_by = models.ForeignKey(User, models.SET_NULL, null=True, related_name="+")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "number"], name="policy_split_number")]

    def __str__(self) -> str:
        return f"policy split {self.pk}"

    @property
    def title(self) -> str:
        """For people, within the project."""
        return f"Rules of {self.version}"


class PolicyRule(models.Model):
    """A rule of one version. start, end: characters of the text, which are its quote. statement: the rule on one line,
    as people edited it. change: against the version before. earlier: the rule there that it repeats or rewords.
    checks: in the language of `workers.schema.policy_checks`. criterion: what an accepted rule is judged by.
    """

    class Category(models.TextChoices):
        FACTUAL = "factual", "Factual"
        BEHAVIOURAL = "behavioural", "Behavioural"
        CONDITIONAL = "conditional", "Conditional"

    class Severity(models.TextChoices):
        LOW = "low", "Low"
        MEDIUM = "medium", "Medium"
        HIGH = "high", "High"

    class State(models.TextChoices):
        PROPOSED = "proposed", "Proposed"
        ACCEPTED = "accepted", "Accepted"
        REJECTED = "rejected", "Rejected"
        MERGED = "merged", "Merged"

    class Change(models.TextChoices):
        NEW = "new", "New"
        CHANGED = "changed", "Changed"
        SAME = "same", "Same"

    version = models.ForeignKey(PolicyVersion, models.CASCADE, related_name="rules")
    start = models.PositiveIntegerField()
    end = models.PositiveIntegerField()
    statement = models.TextField()
    category = models.CharField(max_length=11, choices=Category)
    severity = models.CharField(max_length=6, choices=Severity)
    scope = models.CharField(max_length=300, blank=True)
    preconditions = models.JSONField(default=list)
    checks = models.JSONField(default=list)
    state = models.CharField(max_length=8, choices=State, default=State.PROPOSED)
    change = models.CharField(max_length=7, choices=Change, default=Change.NEW)
    earlier = models.ForeignKey("self", models.SET_NULL, null=True, related_name="later")
    merged_into = models.ForeignKey("self", models.SET_NULL, null=True, related_name="merged")
    criterion = models.ForeignKey(Criterion, models.SET_NULL, null=True, related_name="policy_rules")
    created_at = models.DateTimeField(auto_now_add=True)
    changed_at = models.DateTimeField(auto_now=True)
    decided_at = models.DateTimeField(null=True)
    decided_by = models.ForeignKey(User, models.SET_NULL, null=True, related_name="+")

    class Meta:
        ordering = ["version", "start", "pk"]
        constraints = [
            models.CheckConstraint(condition=Q(start__lt=models.F("end")), name="policy_rule_quote")
        ]

    def __str__(self) -> str:
        return self.statement[:80]

    @property
    def quote(self) -> str:
        return self.version.text[self.start : self.end]
