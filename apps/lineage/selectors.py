"""Lineage in both directions: from a served reward to its feedback, and from feedback to models and rewards."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.db.models import OuterRef, QuerySet, Subquery

from apps.accounts.models import Project
from apps.annotation.models import Annotator, Campaign, Item
from apps.core.errors import NotFound
from apps.core.jobs.job_queue import JobState
from apps.datasets.models import DatasetVersion
from apps.datasets.selectors import data_folder
from apps.datasets.splits import SPLITS
from apps.lineage.record_summary import summarize_record, trajectory_hashes
from apps.rewards.models import Endpoint, EndpointRevision, ScoreSample
from apps.rewards.selectors import spec_of
from apps.training.models import RewardModel
from apps.training.selectors import with_ancestors
from apps.trajectories.models import Trajectory
from apps.trajectories.selectors import keys_by_content_hash
from workers.schema.components import RewardModelPart
from workers.schema.storage import read_raw_records

_SAMPLES = 5


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A reward model behind a served reward. value: its unweighted score, None if the sample has none.

    dataset_version: what it was trained on, None if it was trained outside this installation. ancestors: the models
    whose weights it was fine-tuned from, nearest first.
    """

    model: RewardModel
    weight: float
    value: float | None
    dataset_version: DatasetVersion | None
    ancestors: tuple[RewardModel, ...]


@dataclass(frozen=True, slots=True)
class ModelUse:
    """A model trained on a dataset. ancestor: the model trained on it directly, if this one was fine-tuned from it.

    revisions: the endpoint revisions that serve the model, newest first.
    """

    model: RewardModel
    ancestor: RewardModel | None
    revisions: tuple[EndpointRevision, ...]


@dataclass(frozen=True, slots=True)
class DatasetUse:
    """The models trained on a dataset. summary: which part of the dataset is concerned, for people."""

    dataset_version: DatasetVersion
    summary: str
    models: tuple[ModelUse, ...]


@dataclass(frozen=True, slots=True)
class Label:
    """A feedback record of a frozen dataset. influence: its effect on the reward, if computed. item: primary key of
    the annotated item, if it still exists. trajectories: primary keys in order, None for deleted ones."""

    summary: str
    annotator: str
    influence: float | None
    item: int | None
    task: str
    trajectories: tuple[int | None, ...]


def get_sample(project: Project, pk: int) -> ScoreSample:
    """Raises NotFound."""
    found = ScoreSample.objects.filter(endpoint__project=project, pk=pk).select_related("endpoint").first()
    if found is None:
        raise NotFound(
            "There is no such sample. Samples are deleted after the retention time of the endpoint's usage page."
        )
    return found


def served_models(sample: ScoreSample) -> list[ServedModel]:
    """The reward models that computed the reward, largest weight first."""
    revision = sample.endpoint.revisions.filter(number=sample.version).first()
    if revision is None:
        return []
    components = [
        component for component in spec_of(revision).components if isinstance(component, RewardModelPart)
    ]
    rows = revision.reward_models.select_related(
        "project", "training_run__dataset_version__project", "parent__project"
    )
    models = {str(model): model for model in rows}
    values = sample.result.get("components") or {}
    found = [
        ServedModel(
            model := models[component.model],
            component.weight,
            values.get(component.name),
            model.training_run.dataset_version if model.training_run else None,
            tuple(with_ancestors(model))[1:],
        )
        for component in components
    ]
    return sorted(found, key=lambda served: -abs(served.weight))


def find_dataset_uses(dataset_versions: Sequence[tuple[DatasetVersion, str]]) -> list[DatasetUse]:
    """For each dataset and summary: the models trained on it, and those fine-tuned from them."""
    return [
        DatasetUse(dataset_version, summary, tuple(_model_uses(dataset_version)))
        for dataset_version, summary in dataset_versions
    ]


def dataset_versions_with_item(item: Item) -> list[tuple[DatasetVersion, str]]:
    """Frozen datasets with feedback on the item, and in which splits. Only datasets newer than the item are read."""
    rows = _frozen(item.campaign.project).filter(created_at__gte=item.created_at)
    name = record_item_name(item)
    found = []
    for dataset_version in rows:
        counts = {
            split: len(list(read_raw_records(_split_file(dataset_version, split), about=name)))
            for split in SPLITS
        }
        if any(counts.values()):
            summary = ", ".join(f"{count} in {split}" for split, count in counts.items() if count)
            found.append((dataset_version, summary))
    return found


def dataset_versions_with_annotator(annotator: Annotator) -> list[tuple[DatasetVersion, str]]:
    """Frozen datasets with feedback of the annotator, and how many records."""
    rows = _frozen(annotator.project, with_files=False).filter(annotators__has_key=annotator.name)
    return [
        (
            version,
            f"{version.annotators[annotator.name]['records']:,} of {sum(version.splits.values()):,} records",
        )
        for version in rows
    ]


def withdrawn_datasets(project: Project) -> list[tuple[DatasetVersion, str]]:
    """Datasets withdrawn because data in them was deleted, newest withdrawal first."""
    rows = DatasetVersion.objects.filter(project=project).exclude(withdrawn_at=None).select_related("project")
    return [(version, version.withdrawn_because) for version in rows.order_by("-withdrawn_at")]


def serving_revisions(model: RewardModel) -> list[EndpointRevision]:
    """The revisions that serve the model, newest first."""
    return list(model.revisions.select_related("endpoint__active").order_by("endpoint__name", "-number"))


def withdrawn_training_data(model: RewardModel) -> list[DatasetVersion]:
    """Withdrawn datasets that the model or one of its ancestors was trained on."""
    return [
        ancestor.training_run.dataset_version
        for ancestor in with_ancestors(model)
        if ancestor.training_run is not None and ancestor.training_run.dataset_version.withdrawn_at
    ]


def newest_samples(revision: EndpointRevision) -> list[ScoreSample]:
    """The newest sampled requests the revision answered."""
    return list(revision.endpoint.samples.filter(version=revision.number).order_by("-at", "-pk")[:_SAMPLES])


def newest_sample_by_endpoint(endpoints: Collection[Endpoint]) -> dict[int, ScoreSample]:
    """The newest sampled request of each endpoint, by key of the endpoint, in one query."""
    newest = ScoreSample.objects.filter(endpoint=OuterRef("pk")).order_by("-at", "-pk").values("pk")[:1]
    rows = Endpoint.objects.filter(pk__in=[endpoint.pk for endpoint in endpoints])
    keys = rows.annotate(newest=Subquery(newest)).exclude(newest=None).values("newest")
    return {sample.endpoint_id: sample for sample in ScoreSample.objects.filter(pk__in=keys)}


def read_labels(
    dataset_version: DatasetVersion, *, split: str, annotator: str = "", start: int, count: int
) -> tuple[list[Label], bool]:
    """A page of the feedback records of a frozen split, in order, and whether there are more."""
    records: list[dict[str, Any]] = []
    for _, record in read_raw_records(_split_file(dataset_version, split)):
        if not annotator or record.get("annotator") == annotator:
            if len(records) == start + count:
                return _labels(dataset_version.project, [(each, None) for each in records[start:]]), True
            records.append(record)
    return _labels(dataset_version.project, [(each, None) for each in records[start:]]), False


def most_influential_labels(
    dataset_version: DatasetVersion, moved: Sequence[dict[str, float]]
) -> list[Label]:
    """moved: [{record, by}] of `workers.influence`, in display order."""
    influences = {int(entry["record"]): entry["by"] for entry in moved}
    records = {
        position: record
        for position, record in read_raw_records(_split_file(dataset_version, "train"))
        if position in influences
    }
    return _labels(
        dataset_version.project,
        [(records[position], value) for position, value in influences.items() if position in records],
    )


def record_item_name(item: Item) -> str:
    """The name of an item in feedback records, see `apps.annotation.feedback.records`."""
    return f"{item.campaign.name}:{item.key}"


def get_item(project: Project, pk: int) -> Item:
    """Raises NotFound."""
    found = Item.objects.filter(campaign__project=project, pk=pk)
    item = found.select_related("campaign__project", "task").first()
    if item is None:
        raise NotFound(f"There is no item {pk} in this project.")
    return item


def _frozen(project: Project, *, with_files: bool = True) -> QuerySet[DatasetVersion]:
    """Newest first. with_files: only those whose files were not removed."""
    rows = DatasetVersion.objects.filter(project=project, state=JobState.SUCCEEDED).select_related("project")
    return (rows.filter(withdrawn_at=None) if with_files else rows).order_by("-created_at", "-pk")


def _split_file(dataset_version: DatasetVersion, split: str) -> Path:
    return data_folder(dataset_version) / f"{split}.jsonl.zst"


def _model_uses(dataset_version: DatasetVersion) -> list[ModelUse]:
    own = list(
        RewardModel.objects.filter(training_run__dataset_version=dataset_version)
        .select_related("project")
        .order_by("pk")
    )
    found = [ModelUse(model, None, tuple(serving_revisions(model))) for model in own]
    queue, seen = [(model, model) for model in own], {model.pk for model in own}
    while queue:
        model, ancestor = queue.pop(0)
        for child in model.children.select_related("project").order_by("pk"):
            if child.pk not in seen:
                seen.add(child.pk)
                found.append(ModelUse(child, ancestor, tuple(serving_revisions(child))))
                queue.append((child, ancestor))
    return found


def _labels(project: Project, rows: Sequence[tuple[dict[str, Any], float | None]]) -> list[Label]:
    hashes = [trajectory_hashes(record) for record, _ in rows]
    keys = keys_by_content_hash(project, {content_hash for sides in hashes for content_hash in sides})
    tasks = dict(
        Trajectory.objects.filter(pk__in=keys.values()).values_list("content_hash", "task__external_id")
    )
    items = _items(project, {record["item"] for record, _ in rows if record.get("item")})
    return [
        Label(
            summary=summarize_record(record),
            annotator=record.get("annotator", ""),
            influence=influence,
            item=items.get(record.get("item", "")),
            task=next((tasks[content_hash] for content_hash in sides if content_hash in tasks), ""),
            trajectories=tuple(keys.get(content_hash) for content_hash in sides),
        )
        for (record, influence), sides in zip(rows, hashes, strict=True)
    ]


def _items(project: Project, names: Collection[str]) -> dict[str, int]:
    """Primary keys of items by their name in records. The name of a campaign may contain a colon."""
    found: dict[str, int] = {}
    for pk, campaign in Campaign.objects.filter(project=project).values_list("pk", "name"):
        prefix = f"{campaign}:"
        keys = [name.removeprefix(prefix) for name in names if name.startswith(prefix)]
        rows = Item.objects.filter(campaign=pk, key__in=keys).values_list("key", "pk")
        found |= {prefix + key: item for key, item in rows}
    return found
