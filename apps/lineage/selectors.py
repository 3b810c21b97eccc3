"""What a served reward was made of, and what was made of a judgement: both ways along the same chain."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.db.models import QuerySet

from apps.accounts.models import Project
from apps.annotation.models import Annotator, Campaign, Item
from apps.core.errors import NotFound
from apps.core.jobs.job_queue import JobState
from apps.datasets.models import DatasetVersion
from apps.datasets.selectors import data_folder
from apps.datasets.splits import SPLITS
from apps.lineage.words import in_words, sides_of
from apps.rewards.models import EndpointRevision, ScoreSample
from apps.rewards.selectors import spec_of
from apps.training.models import RewardModel
from apps.training.selectors import line_of
from apps.trajectories.models import Trajectory
from apps.trajectories.selectors import by_content
from workers.schema.endpoints import RewardModelPart
from workers.schema.storage import read_said

_SAMPLES = 5


@dataclass(frozen=True, slots=True)
class Behind:
    """A reward model behind a served reward. value: what it said, before its weight; None where it was not kept.

    dataset_version: what it was trained on, None where it was trained elsewhere. before: the models it began as,
    nearest first.
    """

    model: RewardModel
    weight: float
    value: float | None
    dataset_version: DatasetVersion | None
    before: tuple[RewardModel, ...]


@dataclass(frozen=True, slots=True)
class Used:
    """A model that a dataset is in. through: the model that was trained on it, where that is not the same one.

    revisions: that serve it, newest first.
    """

    model: RewardModel
    through: RewardModel | None
    revisions: tuple[EndpointRevision, ...]


@dataclass(frozen=True, slots=True)
class Made:
    """What was made of a dataset. holds: what of it is meant, in words."""

    dataset_version: DatasetVersion
    holds: str
    models: tuple[Used, ...]


@dataclass(frozen=True, slots=True)
class Label:
    """A judgement as a frozen dataset holds it. by: what it moved the reward by. item: where it was judged, if that is
    still there. runs: keys of its trajectories, in order, None for what was deleted."""

    said: str
    annotator: str
    by: float | None
    item: int | None
    task: str
    runs: tuple[int | None, ...]


def sample_in(project: Project, pk: int) -> ScoreSample:
    """Raises NotFound."""
    found = ScoreSample.objects.filter(endpoint__project=project, pk=pk).select_related("endpoint").first()
    if found is None:
        raise NotFound(
            "There is no such sample; samples are kept for as long as the endpoint's usage page says."
        )
    return found


def behind(sample: ScoreSample) -> list[Behind]:
    """The models that made the reward, the one that counts most first."""
    revision = sample.endpoint.revisions.filter(number=sample.version).first()
    if revision is None:
        return []
    parts = [one for one in spec_of(revision).components if isinstance(one, RewardModelPart)]
    rows = revision.reward_models.select_related(
        "project", "training_run__dataset_version__project", "parent__project"
    )
    models = {str(one): one for one in rows}
    said = sample.result.get("components") or {}
    found = [
        Behind(
            model := models[one.model],
            one.weight,
            said.get(one.name),
            model.training_run.dataset_version if model.training_run else None,
            tuple(line_of(model))[1:],
        )
        for one in parts
    ]
    return sorted(found, key=lambda one: -abs(one.weight))


def made_of(dataset_versions: Sequence[tuple[DatasetVersion, str]]) -> list[Made]:
    """Of each dataset and what of it is meant: the models trained on it, and those that began as one of them."""
    return [
        Made(dataset_version, holds, tuple(_uses(dataset_version)))
        for dataset_version, holds in dataset_versions
    ]


def dataset_versions_with_item(item: Item) -> list[tuple[DatasetVersion, str]]:
    """Frozen datasets that hold a judgement of the item, and in which split. Looks through those frozen since."""
    rows = _frozen(item.campaign.project).filter(created_at__gte=item.created_at)
    name = name_of(item)
    found = []
    for dataset_version in rows:
        counts = {split: len(list(read_said(_file(dataset_version, split), about=name))) for split in SPLITS}
        if any(counts.values()):
            words = ", ".join(f"{n} in {split}" for split, n in counts.items() if n)
            found.append((dataset_version, words))
    return found


def dataset_versions_with(annotator: Annotator) -> list[tuple[DatasetVersion, str]]:
    """Frozen datasets that hold something she said, and how much."""
    rows = _frozen(annotator.project, there=False).filter(annotators__has_key=annotator.name)
    return [
        (one, f"{one.annotators[annotator.name]['records']:,} of {sum(one.splits.values()):,} records")
        for one in rows
    ]


def withdrawn(project: Project) -> list[tuple[DatasetVersion, str]]:
    """Datasets that held what was deleted, newest withdrawal first."""
    rows = DatasetVersion.objects.filter(project=project).exclude(withdrawn_at=None).select_related("project")
    return [(one, one.withdrawn_because) for one in rows.order_by("-withdrawn_at")]


def uses_of(model: RewardModel) -> list[EndpointRevision]:
    """Revisions that serve it, newest first."""
    return list(model.revisions.select_related("endpoint__active").order_by("endpoint__name", "-number"))


def deleted_under(model: RewardModel) -> list[DatasetVersion]:
    """Withdrawn datasets that it, or a model it began as, was trained on."""
    return [
        one.training_run.dataset_version
        for one in line_of(model)
        if one.training_run is not None and one.training_run.dataset_version.withdrawn_at
    ]


def samples_of(revision: EndpointRevision) -> list[ScoreSample]:
    """The newest of what it answered."""
    return list(revision.endpoint.samples.filter(version=revision.number).order_by("-at", "-pk")[:_SAMPLES])


def labels_of(
    dataset_version: DatasetVersion, *, split: str, annotator: str = "", start: int, count: int
) -> tuple[list[Label], bool]:
    """Some judgements of a frozen split, in their order, and whether there are more."""
    kept: list[dict[str, Any]] = []
    for _, said in read_said(_file(dataset_version, split)):
        if not annotator or said.get("annotator") == annotator:
            if len(kept) == start + count:
                return _labels(dataset_version.project, [(one, None) for one in kept[start:]]), True
            kept.append(said)
    return _labels(dataset_version.project, [(one, None) for one in kept[start:]]), False


def labels_that_moved(dataset_version: DatasetVersion, moved: Sequence[dict[str, float]]) -> list[Label]:
    """moved: [{record, by}] of `workers.influence`, in the order they are to be shown."""
    by = {int(one["record"]): one["by"] for one in moved}
    said = {place: one for place, one in read_said(_file(dataset_version, "train")) if place in by}
    return _labels(
        dataset_version.project, [(said[place], value) for place, value in by.items() if place in said]
    )


def name_of(item: Item) -> str:
    """How records call it, see `apps.annotation.feedback.records`."""
    return f"{item.campaign.name}:{item.key}"


def item_in(project: Project, pk: int) -> Item:
    """Raises NotFound."""
    found = Item.objects.filter(campaign__project=project, pk=pk)
    item = found.select_related("campaign__project", "task").first()
    if item is None:
        raise NotFound(f"There is no item {pk} in this project.")
    return item


def _frozen(project: Project, *, there: bool = True) -> QuerySet[DatasetVersion]:
    """Newest first. there: only those whose files are."""
    rows = DatasetVersion.objects.filter(project=project, state=JobState.SUCCEEDED).select_related("project")
    return (rows.filter(withdrawn_at=None) if there else rows).order_by("-created_at", "-pk")


def _file(dataset_version: DatasetVersion, split: str) -> Path:
    return data_folder(dataset_version) / f"{split}.jsonl.zst"


def _uses(dataset_version: DatasetVersion) -> list[Used]:
    own = list(
        RewardModel.objects.filter(training_run__dataset_version=dataset_version)
        .select_related("project")
        .order_by("pk")
    )
    found = [Used(one, None, tuple(uses_of(one))) for one in own]
    below, seen = [(one, one) for one in own], {one.pk for one in own}
    while below:
        model, through = below.pop(0)
        for child in model.children.select_related("project").order_by("pk"):
            if child.pk not in seen:
                seen.add(child.pk)
                found.append(Used(child, through, tuple(uses_of(child))))
                below.append((child, through))
    return found


def _labels(project: Project, rows: Sequence[tuple[dict[str, Any], float | None]]) -> list[Label]:
    hashes = [sides_of(said) for said, _ in rows]
    runs = by_content(project, {one for some in hashes for one in some})
    tasks = dict(
        Trajectory.objects.filter(pk__in=runs.values()).values_list("content_hash", "task__external_id")
    )
    items = _items(project, {said["item"] for said, _ in rows if said.get("item")})
    return [
        Label(
            said=in_words(said),
            annotator=said.get("annotator", ""),
            by=by,
            item=items.get(said.get("item", "")),
            task=next((tasks[one] for one in sides if one in tasks), ""),
            runs=tuple(runs.get(one) for one in sides),
        )
        for (said, by), sides in zip(rows, hashes, strict=True)
    ]


def _items(project: Project, names: Collection[str]) -> dict[str, int]:
    """Keys of items by what records call them. A campaign's name may have a colon in it."""
    found: dict[str, int] = {}
    for pk, campaign in Campaign.objects.filter(project=project).values_list("pk", "name"):
        begin = f"{campaign}:"
        keys = [name.removeprefix(begin) for name in names if name.startswith(begin)]
        rows = Item.objects.filter(campaign=pk, key__in=keys).values_list("key", "pk")
        found |= {begin + key: item for key, item in rows}
    return found
