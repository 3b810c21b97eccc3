"""Endpoints, their revisions and releases, and what is recorded of their use."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils import timezone

from apps.accounts.models import Project, User
from apps.judges.models import Judge
from apps.training.models import RewardModel


class Endpoint(models.Model):
    """Unique per project: trainers name it in a URL without a project, and their key says which project's it is.

    standby: a revision that is kept loaded and warm next to the active one, and answers nothing.

    sample_share: of scored items, that is stored; 0 stores nothing. Samples are kept for sample_days, at most
    sample_most of them, without what sample_redacts (kinds of `redaction.KINDS`) and sample_patterns match.

    Decisions of the guard are all logged, for guard_days, with excerpts of guard_characters; people review those that
    ask a person, and guard_review_share of the others.
    """

    project = models.ForeignKey(Project, models.CASCADE, related_name="endpoints")
    name = models.SlugField(max_length=60)
    active = models.ForeignKey("EndpointRevision", models.PROTECT, null=True, related_name="+")
    standby = models.ForeignKey("EndpointRevision", models.SET_NULL, null=True, blank=True, related_name="+")
    switched_off = models.BooleanField(default=False)
    switched_off_reason = models.TextField(blank=True)
    sample_share = models.FloatField(default=0.0)
    sample_days = models.PositiveSmallIntegerField(default=30)
    sample_most = models.PositiveIntegerField(default=2000)
    sample_redacts = ArrayField(models.CharField(max_length=20), default=list)
    sample_patterns = ArrayField(models.TextField(), default=list)
    guard_review_share = models.FloatField(default=0.1)
    guard_days = models.PositiveSmallIntegerField(default=30)
    guard_characters = models.PositiveIntegerField(default=1000)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "name"], name="endpoint_name_per_project")]

    def __str__(self) -> str:
        return self.name

    @property
    def full_name(self) -> str:
        return f"{self.project.slug}/{self.name}"

    @property
    def sample_percent(self) -> str:
        return f"{100 * self.sample_share:g}"

    @property
    def guard_review_percent(self) -> str:
        return f"{100 * self.guard_review_share:g}"


class EndpointRevision(models.Model):
    """Never changes once written, but for its reason: why it serves although a check of a model failed.

    spec: {"components": [{"name", "type", "model", "weight"}], "transforms": [...]}.
    """

    endpoint = models.ForeignKey(Endpoint, models.CASCADE, related_name="revisions")
    number = models.PositiveIntegerField()
    spec = models.JSONField()
    reward_models = models.ManyToManyField(RewardModel, through="RevisionModel", related_name="revisions")
    judges = models.ManyToManyField(Judge, through="RevisionJudge", related_name="revisions")
    reason = models.TextField(blank=True, default="")
    created_by = models.ForeignKey(User, models.SET_NULL, null=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["endpoint", "number"], name="revision_number_once")]

    def __str__(self) -> str:
        return f"{self.endpoint.name}@{self.number}"


class RevisionModel(models.Model):
    """A model that a revision serves cannot be deleted."""

    revision = models.ForeignKey(EndpointRevision, models.CASCADE, related_name="uses")
    model = models.ForeignKey(RewardModel, models.PROTECT, related_name="uses")

    def __str__(self) -> str:
        return f"the endpoint {self.revision}"


class RevisionJudge(models.Model):
    """A judge that a revision uses cannot be deleted."""

    revision = models.ForeignKey(EndpointRevision, models.CASCADE, related_name="asks")
    judge = models.ForeignKey(Judge, models.PROTECT, related_name="asked_by")

    def __str__(self) -> str:
        return f"the endpoint {self.revision}"


class Release(models.Model):
    """The staged deployment of a revision: first in the shadow of the active one, then as a canary, then promoted.

    rules: see `releases.ReleaseRules`. share: of policy runs (or groups, or prompts) that the candidate answers; 0 for
    a shadow. reason: of its end, or of its latest stage. The JSON API names a release that was rolled back `withdrawn`.
    """

    class Stage(models.TextChoices):
        SHADOW = "shadow", "Shadow"
        CANARY = "canary", "Canary"
        PROMOTED = "promoted", "Promoted"
        ROLLED_BACK = "withdrawn", "Rolled back"

    OPEN = (Stage.SHADOW, Stage.CANARY)

    endpoint = models.ForeignKey(Endpoint, models.CASCADE, related_name="releases")
    revision = models.ForeignKey(EndpointRevision, models.CASCADE, related_name="releases")
    against = models.ForeignKey(EndpointRevision, models.CASCADE, related_name="+")
    stage = models.CharField(max_length=10, choices=Stage.choices)
    share = models.FloatField(default=0.0)
    rules = models.JSONField(default=dict)
    automatic = models.BooleanField(default=False)
    reason = models.TextField(blank=True)
    started_by = models.ForeignKey(User, models.SET_NULL, null=True)
    started_at = models.DateTimeField(default=timezone.now)
    stage_started_at = models.DateTimeField(default=timezone.now)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["endpoint"], condition=models.Q(ended_at=None), name="one_open_release"
            ),
            models.CheckConstraint(condition=models.Q(share__gte=0, share__lte=1), name="release_share"),
        ]

    def __str__(self) -> str:
        return f"release of {self.revision}"

    @property
    def is_open(self) -> bool:
        return self.ended_at is None

    @property
    def percent(self) -> str:
        return f"{100 * self.share:g}"


class ReleaseRollup(models.Model):
    """Scores of the same items by both revisions, summed: see `pair_statistics.PairStatistics`."""

    release = models.ForeignKey(Release, models.CASCADE, related_name="rollups")
    stage = models.CharField(max_length=10)
    policy_version = models.CharField(max_length=200, blank=True)
    pairs = models.BigIntegerField(default=0)
    failed = models.BigIntegerField(default=0)
    uncertain_active = models.BigIntegerField(default=0)
    uncertain_candidate = models.BigIntegerField(default=0)
    outside_active = models.BigIntegerField(default=0)
    outside_candidate = models.BigIntegerField(default=0)
    moments = ArrayField(models.FloatField())

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["release", "stage", "policy_version"], name="release_rollup_once")
        ]

    def __str__(self) -> str:
        return f"{self.release}, {self.stage}"


class ModelServer(models.Model):
    """vLLM or SGLang servers that compute the same decoder, by the name that specs have as `server`."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="model_servers")
    name = models.SlugField(max_length=60)
    created_by = models.ForeignKey(User, models.SET_NULL, null=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["project", "name"], name="model_server_name_once")]

    def __str__(self) -> str:
        return self.name


class ServerReplica(models.Model):
    """One address of a server; `dns+http://name:port` stands for as many replicas as the name has addresses.

    key: encrypted. is_draining: it gets no new batches.
    """

    server = models.ForeignKey(ModelServer, models.CASCADE, related_name="replicas")
    address = models.CharField(max_length=500)
    key = models.TextField(blank=True)
    is_draining = models.BooleanField(default=False)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["pk"]
        constraints = [models.UniqueConstraint(fields=["server", "address"], name="server_replica_once")]

    def __str__(self) -> str:
        return self.address


class ScoreRollup(models.Model):
    """Usage within an hour, by version, caller, policy run and policy version: see `usage.UsageTally`.

    version 0: no version answered. Every replica adds to the rows.
    """

    endpoint = models.ForeignKey(Endpoint, models.CASCADE, related_name="rollups")
    hour = models.DateTimeField()
    version = models.PositiveIntegerField()
    caller = models.CharField(max_length=40)
    run = models.CharField(max_length=200, blank=True)
    policy_version = models.CharField(max_length=200, blank=True)
    requests = models.BigIntegerField(default=0)
    items = models.BigIntegerField(default=0)
    tokens = models.BigIntegerField(default=0)
    cached_tokens = models.BigIntegerField(default=0)
    repeated = models.BigIntegerField(default=0)
    refused = models.BigIntegerField(default=0)
    overloaded = models.BigIntegerField(default=0)
    failed = models.BigIntegerField(default=0)
    uncertain = models.BigIntegerField(default=0)
    truncated = models.BigIntegerField(default=0)
    reward_sum = models.FloatField(default=0.0)
    reward_squares = models.FloatField(default=0.0)
    latency = ArrayField(models.BigIntegerField())
    rewards = ArrayField(models.BigIntegerField())

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["endpoint", "hour", "version", "caller", "run", "policy_version"],
                name="score_rollup_once",
            )
        ]

    def __str__(self) -> str:
        return f"{self.endpoint} {self.hour:%Y-%m-%d %H}h {self.caller}"


class ScoreFlagCount(models.Model):
    """Scored items with a flag within an hour, by version. Every replica adds to the rows."""

    endpoint = models.ForeignKey(Endpoint, models.CASCADE, related_name="flag_counts")
    hour = models.DateTimeField()
    version = models.PositiveIntegerField()
    flag = models.CharField(max_length=80)
    items = models.BigIntegerField(default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["endpoint", "hour", "version", "flag"], name="score_flag_count_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.endpoint} {self.hour:%Y-%m-%d %H}h {self.flag}"


class PolicyRunVersion(models.Model):
    """The version that last scored a policy run, so that every process announces a change once. at: of the change."""

    endpoint = models.ForeignKey(Endpoint, models.CASCADE, related_name="run_versions")
    run = models.CharField(max_length=200)
    version = models.PositiveIntegerField()
    at = models.DateTimeField(default=timezone.now, db_index=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["endpoint", "run"], name="policy_run_version_once")]

    def __str__(self) -> str:
        return f"{self.run} by {self.endpoint}@{self.version}"


class ScoreReceipt(models.Model):
    """Something that is counted once: a request that may be repeated, or a batch of counts. Kept for an hour."""

    id = models.UUIDField(primary_key=True)
    at = models.DateTimeField(default=timezone.now, db_index=True)

    def __str__(self) -> str:
        return str(self.id)


class ScoreSample(models.Model):
    """A scored item with its result, where the endpoint has sampling on. item: as in the reward API.

    steps: the agent's. reward, tokens: of the result. repetition: share of what the agent wrote that it had written
    before (n-grams of four words).
    """

    endpoint = models.ForeignKey(Endpoint, models.CASCADE, related_name="samples")
    version = models.PositiveIntegerField()
    caller = models.CharField(max_length=40)
    run = models.CharField(max_length=200, blank=True)
    policy_version = models.CharField(max_length=200, blank=True)
    item = models.JSONField()
    result = models.JSONField()
    reward = models.FloatField(default=0.0)
    tokens = models.PositiveIntegerField(default=0)
    steps = models.PositiveIntegerField(default=1)
    repetition = models.FloatField(default=0.0)
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        indexes = [models.Index(fields=["endpoint", "-at"], name="score_sample_newest")]

    def __str__(self) -> str:
        return f"{self.endpoint} {self.at:%Y-%m-%d %H:%M:%S}"


class GuardDecision(models.Model):
    """What the guard of an endpoint decided about an action. rule: the check that decided; empty where none did.
    violations: of all checks by this action. prefix, action: redacted excerpts. milliseconds: within the service.
    is_sampled: people review it. is_right: what a person answered.
    """

    class Decision(models.TextChoices):
        ALLOW = "allow", "Allowed"
        DENY = "deny", "Denied"
        ASK = "ask", "Asked a person"

    endpoint = models.ForeignKey(Endpoint, models.CASCADE, related_name="guard_decisions")
    version = models.PositiveIntegerField()
    caller = models.CharField(max_length=40)
    run = models.CharField(max_length=200, blank=True)
    policy_version = models.CharField(max_length=200, blank=True)
    decision = models.CharField(max_length=5, choices=Decision)
    rule = models.TextField(blank=True)
    reason = models.TextField(blank=True)
    violations = models.JSONField(default=list)
    reward = models.FloatField()
    milliseconds = models.FloatField()
    prefix = models.TextField(blank=True)
    action = models.TextField(blank=True)
    is_sampled = models.BooleanField(default=False)
    is_right = models.BooleanField(null=True)
    note = models.TextField(blank=True)
    answered_by = models.ForeignKey(User, models.SET_NULL, null=True, related_name="+")
    answered_at = models.DateTimeField(null=True)
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        indexes = [
            models.Index(fields=["endpoint", "-at"], name="guard_decision_newest"),
            models.Index(
                fields=["endpoint", "at"],
                condition=models.Q(is_sampled=True, is_right=None),
                name="guard_decision_waiting",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.get_decision_display()} by {self.endpoint.name}"

    @property
    def review(self) -> str:
        """right, wrong, waiting, or empty where it is not sampled."""
        if self.is_right is None:
            return "waiting" if self.is_sampled else ""
        return "right" if self.is_right else "wrong"
