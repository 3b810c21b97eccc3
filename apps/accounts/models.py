"""Who may do what: users, projects, memberships, API keys, and the trail of what they did."""

from typing import Any, ClassVar

from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.contrib.auth.models import PermissionsMixin
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Lower
from django.utils import timezone

from apps.accounts.audit_models import AuditAlias, AuditSeal, KeyAddress, ScimIdentity
from apps.accounts.project_numbers import ProjectSequence
from apps.accounts.sign_in_models import AccountLink, GuessCounter, UserSession

__all__ = [
    "AccountLink",
    "ApiKey",
    "AuditAlias",
    "AuditEvent",
    "AuditSeal",
    "FirstAccount",
    "GuessCounter",
    "IdempotentResponse",
    "Invitation",
    "KeyAddress",
    "Membership",
    "Project",
    "ProjectSequence",
    "Role",
    "ScimIdentity",
    "Scope",
    "User",
    "UserManager",
    "UserSession",
]


class UserManager(BaseUserManager["User"]):
    """Lower-cases e-mail addresses, so that one person is one user. Creation lives in services."""

    def get_by_natural_key(self, username: str | None) -> "User":
        return self.get(email=(username or "").strip().lower())


class User(AbstractBaseUser, PermissionsMixin):
    email = models.EmailField(unique=True)
    name = models.CharField(max_length=200, blank=True)
    is_active = models.BooleanField(default=True)
    created_at = models.DateTimeField(default=timezone.now)
    # When a mail to the address or the provider of single sign-on showed that it is theirs; null: nothing did.
    email_verified_at = models.DateTimeField(null=True, blank=True)
    # Someone else has seen the password: no page but the one that changes it.
    must_change_password = models.BooleanField(default=False)

    objects = UserManager()
    USERNAME_FIELD = "email"
    REQUIRED_FIELDS: ClassVar[list[str]] = []

    class Meta:
        constraints = [models.UniqueConstraint(Lower("email"), name="user_email_lower")]

    def __str__(self) -> str:
        return self.name or self.email

    def save(self, *args: Any, **kwargs: Any) -> None:
        is_new = self._state.adding
        super().save(*args, **kwargs)
        if is_new:
            FirstAccount.objects.bulk_create([FirstAccount(pk=FirstAccount.ONLY)], ignore_conflicts=True)


class FirstAccount(models.Model):
    """That there has been an account, one row: the link of the first one stays used when all are deleted."""

    ONLY = 1

    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.CheckConstraint(condition=models.Q(id=1), name="first_account_once")]

    def __str__(self) -> str:
        return f"since {self.created_at:%Y-%m-%d}"


class Project(models.Model):
    slug = models.SlugField(max_length=60, unique=True)
    name = models.CharField(max_length=200)
    # Off: what a model reaches would sway those whose feedback it is measured with.
    annotators_see_models = models.BooleanField(default=False)
    created_at = models.DateTimeField(default=timezone.now)
    require_two_factor = models.BooleanField(default=False)
    require_single_sign_on = models.BooleanField(default=False)
    archived_at = models.DateTimeField(null=True)  # since then nothing in it can be changed

    def __str__(self) -> str:
        return self.slug


class Role(models.TextChoices):
    """From least to most: each may do what those before it may."""

    ANNOTATOR = "annotator"
    REVIEWER = "reviewer"
    RESEARCHER = "researcher"
    OWNER = "owner"

    def includes(self, other: "Role") -> bool:
        order = list(Role)
        return order.index(self) >= order.index(other)


class Membership(models.Model):
    project = models.ForeignKey(Project, models.CASCADE, related_name="memberships")
    user = models.ForeignKey(User, models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=10, choices=Role)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["project", "user"], name="membership_once"),
            models.CheckConstraint(condition=models.Q(role__in=Role.values), name="membership_role"),
        ]

    def __str__(self) -> str:
        return f"{self.user} in {self.project} as {self.role}"


class Scope(models.TextChoices):
    INGEST = "ingest"
    FEEDBACK_READ = "feedback:read"
    FEEDBACK_WRITE = "feedback:write"
    TRAIN = "train"
    REWARD = "reward"
    ADMIN = "admin"


class ServiceAccount(models.Model):
    """A program that has keys of its own: they stay when the person who made them leaves the project."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="service_accounts")
    name = models.SlugField(max_length=60)
    is_active = models.BooleanField(default=True)
    created_by = models.ForeignKey(User, models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "name"], name="service_account_once")]

    def __str__(self) -> str:
        return self.name


class ApiKey(models.Model):
    """A bearer key of one project. Its secret (256 random bits) is shown once; only its SHA-256 is kept.

    It belongs to a member or to a service account, and opens no more than its owner may do (selectors.live_keys).
    Limits: null is the setting's default, 0 no limit. allowed_networks: CIDR; empty is anywhere.
    """

    project = models.ForeignKey(Project, models.CASCADE, related_name="api_keys")
    name = models.CharField(max_length=100, blank=True)
    prefix = models.CharField(max_length=16, unique=True)
    hash = models.CharField(max_length=64, unique=True)
    scopes = ArrayField(models.CharField(max_length=20, choices=Scope))
    owner_user = models.ForeignKey(User, models.CASCADE, null=True, related_name="api_keys")
    owner_service_account = models.ForeignKey(
        ServiceAccount, models.CASCADE, null=True, related_name="api_keys"
    )
    note = models.CharField(max_length=200, blank=True)
    requests_per_minute = models.PositiveIntegerField(null=True)
    tokens_per_minute = models.PositiveBigIntegerField(null=True)
    tokens_per_day = models.PositiveBigIntegerField(null=True)
    allowed_networks = ArrayField(models.CharField(max_length=50), default=list)
    created_by = models.ForeignKey(User, models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(owner_user=None) ^ models.Q(owner_service_account=None),
                name="apikey_one_owner",
            ),
            models.CheckConstraint(
                condition=models.Q(scopes__contained_by=Scope.values), name="apikey_scopes"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.prefix}… ({', '.join(self.scopes)})"

    @property
    def is_live(self) -> bool:
        return self.revoked_at is None and (self.expires_at is None or self.expires_at > timezone.now())

    @property
    def owner(self) -> User | ServiceAccount:
        owner = self.owner_user or self.owner_service_account
        assert owner is not None  # a constraint
        return owner

    @property
    def is_of_nobody(self) -> bool:
        """Given to a service account when keys came to have owners."""
        return self.owner_service_account_id is not None and bool(self.note)

    @property
    def has_limits(self) -> bool:
        limits = (self.requests_per_minute, self.tokens_per_minute, self.tokens_per_day)
        return any(limit is not None for limit in limits)


class AuditEvent(models.Model):
    """Append-only; a trigger of the database and the application's rights refuse everything else.

    It outlives its project: `project_slug` says which one it was. Its place in the chain is an AuditSeal.
    """

    project = models.ForeignKey(
        Project, models.DO_NOTHING, null=True, db_constraint=False, related_name="audit_events"
    )
    project_slug = models.CharField(max_length=60, blank=True)
    actor = models.CharField(max_length=254)  # a person's pseudonym, a key's prefix, or "command line"
    verb = models.CharField(max_length=60)
    target = models.CharField(max_length=200, blank=True)
    data = models.JSONField(default=dict)
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        indexes = [
            models.Index(fields=["project", "-at"]),
            models.Index(fields=["project", "actor", "-at"], name="audit_by_actor"),
            models.Index(fields=["project", "verb", "-at"], name="audit_by_verb"),
        ]

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%d %H:%M} {self.actor} {self.verb} {self.target}"


class IdempotentResponse(models.Model):
    """The answer to a write that carried an `Idempotency-Key`, kept to be given again (idempotency.py)."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="+")
    api_key = models.ForeignKey(ApiKey, models.CASCADE, related_name="+")
    key = models.CharField(max_length=255)
    request_hash = models.CharField(max_length=64)  # of method and path
    body_hash = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField(default=0)  # 0 only inside the transaction that does the work
    body = models.TextField(default="")
    created_at = models.DateTimeField(default=timezone.now, db_index=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["project", "key", "request_hash"], name="idempotent_once"),
        ]

    def __str__(self) -> str:
        return self.key


class Invitation(models.Model):
    """A link into a project. Its token (256 random bits) is shown once; only its SHA-256 is kept."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="invitations")
    role = models.CharField(max_length=10, choices=Role)
    email = models.EmailField(blank=True)  # the only address it is for, if any
    prefix = models.CharField(max_length=16, unique=True)
    hash = models.CharField(max_length=64, unique=True)
    uses = models.PositiveIntegerField(default=0)
    most_uses = models.PositiveIntegerField(default=1)
    created_by = models.ForeignKey(User, models.SET_NULL, null=True)
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(uses__lte=models.F("most_uses")), name="invitation_uses"
            ),
            models.CheckConstraint(condition=models.Q(role__in=Role.values), name="invitation_role"),
        ]

    def __str__(self) -> str:
        return f"{self.prefix}… to {self.project} as {self.role}"

    @property
    def is_live(self) -> bool:
        return self.revoked_at is None and self.expires_at > timezone.now() and self.uses < self.most_uses
