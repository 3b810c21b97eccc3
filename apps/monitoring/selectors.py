"""Reads of what is watched."""

from collections.abc import Iterable, Sequence
from typing import Any

from django.db.models import QuerySet

from apps.accounts.models import Project
from apps.core.errors import NotFound
from apps.monitoring.measures import Reference, SampleRow, reference_from_rows, reference_from_training
from apps.monitoring.models import Alert
from apps.monitoring.rules import DEFAULTS as DEFAULT_RULES
from apps.monitoring.rules import MOST, Rule, parse_rules
from apps.rewards.models import Endpoint, EndpointRevision, ScoreSample
from workers.schema.components import RewardModelPart, Verifier
from workers.schema.endpoints import EndpointSpec, parse_spec


def endpoint_rules(endpoint: Endpoint) -> tuple[Rule, ...]:
    """Those that a person saved, else the default ones."""
    monitor = getattr(endpoint, "monitor", None)
    return parse_rules(monitor.rules) if monitor is not None and monitor.rules else DEFAULT_RULES


def project_alerts(project: Project) -> QuerySet[Alert]:
    return Alert.objects.filter(endpoint__project=project).select_related("endpoint__project", "closed_by")


def alert_in(project: Project, pk: int) -> Alert:
    alert = project_alerts(project).filter(pk=pk).first()
    if alert is None:
        raise NotFound(f"There is no alert {pk} in this project.")
    return alert


class SampleScale:
    """How the samples of one revision are read: its rewards before transforms, and which component is gold."""

    def __init__(self, revision: EndpointRevision | None) -> None:
        self._spec: EndpointSpec | None = parse_spec(revision.spec) if revision is not None else None
        self._manifest = _manifest(self._spec, revision)
        statistics = self._manifest.get("reward") or {"median": 0.0, "std": 1.0}
        self._median, self._std = float(statistics["median"]), float(statistics["std"])
        parts = self._spec.components if self._spec else ()
        self._gold = next((part.name for part in parts if isinstance(part, Verifier)), None)

    def training(self) -> Reference | None:
        """What it was trained on; None where its manifest does not say, or several components make the reward."""
        said, measured = self._manifest.get("training"), self._manifest.get("evaluation") or {}
        accuracy = measured.get("accuracy")
        error = None if accuracy is None else 1.0 - accuracy
        return reference_from_training(said, "in training", error=error) if said else None

    def row(self, sample: ScoreSample) -> SampleRow:
        item, result = sample.item, sample.result
        flags = result.get("flags") or ()
        sent = (item.get("logprob"), item.get("ref_logprob"))
        return SampleRow(
            pk=sample.pk,
            policy_version=sample.policy_version,
            reward=(result["raw"] - self._median) / self._std,
            tokens=sample.tokens,
            steps=sample.steps,
            repetition=sample.repetition,
            uncertain="uncertain" in flags,
            outside="out_of_distribution" in flags,
            kl=None if None in sent else sent[0] - sent[1],
            gold=None if self._gold is None else result["components"].get(self._gold),
        )

    def rows(self, samples: Iterable[ScoreSample]) -> list[SampleRow]:
        return [self.row(sample) for sample in samples]


def sample_scale(endpoint: Endpoint, version: int) -> SampleScale:
    rows = endpoint.revisions.prefetch_related("reward_models__project")
    return SampleScale(rows.filter(number=version).first())


def reference_for_version(
    endpoint: Endpoint, version: int, scale: SampleScale, *, least: int
) -> Reference | None:
    """What the rows of a version are compared with: its training; else, and for what training does not tell, what was
    first asked of it. None where that is too little."""
    first = endpoint.samples.filter(version=version).order_by("at", "pk")[:MOST_FIRST]
    rows = scale.rows(first)
    began = reference_from_rows(rows, "at first") if len(rows) >= least else None
    trained = scale.training()
    if trained is None:
        return began
    if began is None:
        return trained
    return Reference(**{name: _either(trained, began, name) for name in Reference.__dataclass_fields__})


MOST_FIRST = 300


def newest_samples(endpoint: Endpoint, version: int, run: str) -> Sequence[ScoreSample]:
    """The newest samples, oldest first."""
    newest = endpoint.samples.filter(version=version, run=run).order_by("-at", "-pk")[:MOST]
    return list(newest)[::-1]


def _either(trained: Reference, began: Reference, name: str) -> Any:
    value = getattr(trained, name)
    return getattr(began, name) if value is None else value


def _manifest(spec: EndpointSpec | None, revision: EndpointRevision | None) -> dict[str, Any]:
    """Of the one model that makes the reward; empty where several components do, whose sum is on the reward scale."""
    if spec is None or revision is None:
        return {}
    counted = [component for component in spec.components if component.weight]
    if len(counted) != 1 or not isinstance(counted[0], RewardModelPart):
        return {}
    models = {str(model): model for model in revision.reward_models.all()}
    found = models.get(counted[0].model)
    return found.manifest if found else {}
