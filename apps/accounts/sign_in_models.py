"""What signing in needs next to the user: links to a password, sessions, counted failures."""

from importlib import import_module
from typing import ClassVar

from django.conf import settings
from django.contrib.sessions.backends.base import SessionBase
from django.contrib.sessions.base_session import AbstractBaseSession, BaseSessionManager
from django.db import models
from django.utils import timezone


class AccountLink(models.Model):
    """A link that is used once. Its token (256 random bits) is shown or mailed once; only its SHA-256 is kept."""

    class Purpose(models.TextChoices):
        PASSWORD = "password"  # noqa: S105 - choose a password for an account that exists
        REGISTRATION = "registration"  # make the account: the address is shown by the link having arrived
        VERIFY = "verify"  # the address is theirs: good only for who is signed in with that account
        LOGIN = "login"  # the operator's way in, where single sign-on is enforced and away

    purpose = models.CharField(max_length=12, choices=Purpose)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, null=True, related_name="account_links"
    )
    email = models.EmailField()
    invitation = models.ForeignKey("accounts.Invitation", models.CASCADE, null=True, related_name="+")
    # Mailed: the person who has it reads the mail of that address. Else it was shown to someone, and proves nothing.
    is_mailed = models.BooleanField(default=False)
    # The owner's project, for a link an owner made: it stays good only while the account is in no other.
    project = models.ForeignKey("accounts.Project", models.CASCADE, null=True, related_name="+")
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    hash = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)
    # A letter that waits: when it is tried next, and how often it was.
    send_at = models.DateTimeField(null=True, db_index=True)
    attempts = models.PositiveSmallIntegerField(default=0)

    class Meta:
        indexes: ClassVar = [models.Index(fields=["email", "purpose"], name="account_link_email")]

    def __str__(self) -> str:
        return f"{self.purpose} link for {self.email}"

    @property
    def is_live(self) -> bool:
        return self.used_at is None and self.expires_at > timezone.now()


class GuessCounter(models.Model):
    """Failures of one kind from one subject, e.g. wrong passwords for one address. The subject is kept as a hash."""

    key = models.CharField(max_length=64, primary_key=True)
    failures = models.PositiveIntegerField(default=0)
    updated_at = models.DateTimeField(default=timezone.now, db_index=True)
    blocked_until = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"{self.failures} failures of {self.key}"


class UserSession(AbstractBaseSession):
    """A session, and whose it is: the table of `apps.accounts.sessions.SessionStore`."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, null=True, related_name="sessions")
    began_at = models.DateTimeField(null=True)
    seen_at = models.DateTimeField(null=True)
    address = models.GenericIPAddressField(null=True)
    agent = models.CharField(max_length=300, blank=True)

    objects: ClassVar[BaseSessionManager] = BaseSessionManager()

    class Meta(AbstractBaseSession.Meta):
        abstract = False
        indexes: ClassVar = [models.Index(fields=["user", "address"], name="user_session_address")]

    @classmethod
    def get_session_store_class(cls) -> type[SessionBase]:

        store: type[SessionBase] = import_module(settings.SESSION_ENGINE).SessionStore
        return store
