"""What stands next to the audit trail: its chain, and whom its pseudonyms mean."""

from django.db import models
from django.db.models.functions import Lower
from django.utils import timezone


class AuditSeal(models.Model):
    """An event's place in the chain of the installation and in that of its project. Append-only, as the events."""

    sequence = models.BigIntegerField(primary_key=True)
    event = models.OneToOneField("accounts.AuditEvent", models.DO_NOTHING, related_name="seal")
    previous_hash = models.CharField(max_length=64)
    # Of the event's project, which may be deleted since; 0 for none.
    project_number = models.BigIntegerField()
    project_sequence = models.BigIntegerField()
    project_previous_hash = models.CharField(max_length=64)
    hash = models.CharField(max_length=64)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["project_number", "project_sequence"], name="seal_project_sequence"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.sequence}:{self.hash[:12]}"


class AuditAlias(models.Model):
    """Whom or what a pseudonym of the trail means. Without this row: no one."""

    class Kind(models.TextChoices):
        PERSON = "person"  # an e-mail address
        NETWORK = "network"  # where someone came from

    pseudonym = models.CharField(max_length=40, unique=True)
    kind = models.CharField(max_length=10, choices=Kind)
    value = models.CharField(max_length=254)
    belongs_to = models.CharField(max_length=40, blank=True)  # the pseudonym of the person, for a network
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["kind", "value", "belongs_to"], name="alias_once"),
        ]
        indexes = [models.Index(fields=["belongs_to"], name="alias_of_person")]

    def __str__(self) -> str:
        return self.pseudonym


class KeyAddress(models.Model):
    """A network from which a key was used."""

    api_key = models.ForeignKey("accounts.ApiKey", models.CASCADE, related_name="addresses")
    network = models.CharField(max_length=50)
    first_used_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["api_key", "network"], name="key_address_once")]

    def __str__(self) -> str:
        return f"{self.api_key_id} from {self.network}"


class ScimIdentity(models.Model):
    """What a directory calls a person. removed_at: it deleted them there; the account is closed."""

    user = models.OneToOneField("accounts.User", models.CASCADE, related_name="scim")
    user_name = models.CharField(max_length=254)
    external_id = models.CharField(max_length=254, blank=True)
    removed_at = models.DateTimeField(null=True)
    changed_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint(Lower("user_name"), name="scim_user_name_once")]

    def __str__(self) -> str:
        return self.user_name
