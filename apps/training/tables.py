"""Tables of training runs and models."""

from datetime import timedelta
from typing import Any

from django.db.models import DurationField, ExpressionWrapper, F, QuerySet
from django.db.models.fields.json import KeyTransform
from django.db.models.functions import Coalesce
from django.urls import reverse
from django.utils import timezone

from apps.accounts.models import Project
from apps.core.jobs.job_queue import JobState
from apps.core.tables import DataTable, TableAction, TableColumn, TableFilter
from apps.training.groups import SeedGroup
from apps.training.models import RewardModel, TrainingRun
from apps.training.recipes import toml

_LOOKED_AT = 200  # newest runs whose recipes tell which keys differ
_STATES = [(str(state.value), str(state.label)) for state in JobState]
# Where a report has the result that its summary is about, and the parts that have columns of their own.
_PARTS = {
    "outcome": ("Outcomes, AUC", ("outcome", "auc")),
    "first_errors": ("First errors", ("steps", "first_error_accuracy")),
    "step_labels": ("Step labels", ("steps", "labels", "accuracy")),
    "scores": ("Ratings and scores, correlation", ("scores", "spearman")),
}


def _in_report(path: tuple[str, ...], field: str = "report") -> KeyTransform:
    found: Any = field
    for name in path:
        found = KeyTransform(name, found)
    return found


def _held_out(field: str) -> Coalesce:
    paths = [
        ("preference", "accuracy"),
        ("pooled", "preference", "accuracy"),
        *(path for _, path in _PARTS.values()),
    ]
    return Coalesce(*(_in_report(path, field) for path in paths))


def run_duration(run: TrainingRun) -> timedelta | None:
    """Until now, where it goes on."""
    if run.started_at is None:
        return None
    if run.finished_at is None and run.is_finished:
        return None
    return (run.finished_at or timezone.now()) - run.started_at


def _seconds(run: TrainingRun) -> int | None:
    duration = run_duration(run)
    return None if duration is None else round(duration.total_seconds())


def _main_value(run: TrainingRun) -> float | None:
    return None if run.measure is None else run.measure.value


def _part(path: tuple[str, ...]) -> Any:
    def value(run: TrainingRun) -> float | None:
        found: Any = run.report
        for name in path:
            found = found.get(name) if isinstance(found, dict) else None
        return found

    return value


def _parameter(key: str) -> Any:
    return lambda run: toml(run.recipe[key]) if key in run.recipe else None


_MODEL_TEMPLATE = "training/cells/_models.html"


class RunTable(DataTable[TrainingRun]):
    """options: project. Keys in which the project's recipes differ are columns too."""

    name = "training-runs"
    nouns = ("training run", "training runs")
    default_sort = "-started"
    search = ("name", "model_name", "recipe_name", "dataset_version__name")
    search_label = "Name, model, recipe or dataset"
    own_columns = (
        TableColumn(
            "run",
            "Run",
            value="title",
            sort="number",
            template="training/cells/_run.html",
            is_fixed=True,
        ),
        TableColumn("state", "State", sort="state", template="training/cells/_state.html"),
        TableColumn(
            "dataset",
            "Dataset",
            value="dataset_version.short_name",
            sort="dataset_version__number",
            template="training/cells/_dataset.html",
        ),
        TableColumn(
            "recipe",
            "Recipe",
            value="recipe_title",
            sort="recipe_name",
            template="training/cells/_recipe.html",
        ),
        TableColumn(
            "held_out",
            "Held out",
            value=_main_value,
            sort=_held_out("report"),
            kind="number",
            template="training/cells/_measure.html",
            help="Result on held-out data, with the 95 % bootstrap interval over tasks",
        ),
        *(
            TableColumn(
                name,
                label,
                value=_part(path),
                sort=_in_report(path),
                kind="number",
                template="training/cells/_decimal.html",
                is_shown=False,
            )
            for name, (label, path) in _PARTS.items()
        ),
        TableColumn(
            "duration",
            "Duration",
            value=_seconds,
            sort=ExpressionWrapper(F("finished_at") - F("started_at"), DurationField()),
            kind="number",
            template="components/table/cells/_duration.html",
        ),
        TableColumn("seed", "Seed", sort="seed", kind="number", is_shown=False),
        TableColumn("model", "Model", value="model_title", template=_MODEL_TEMPLATE),
        TableColumn("where", "Runs on", value="launcher", sort="launcher", is_shown=False),
        TableColumn("started", "Started", value="created_at", sort="created_at", kind="time"),
        TableColumn("started_by", "Started by", sort="started_by__email"),
    )

    def __init__(self, request: Any, rows: QuerySet[TrainingRun], *, project: Project) -> None:
        recipes = list(project.runs.order_by("-pk").values_list("recipe", flat=True)[:_LOOKED_AT])
        keys = dict.fromkeys(key for recipe in recipes for key in recipe)
        differing = [key for key in keys if len({toml(recipe.get(key)) for recipe in recipes}) > 1]
        self.columns = (
            *self.own_columns,
            *(
                TableColumn(
                    f"recipe.{key}",
                    key,
                    value=_parameter(key),
                    sort=KeyTransform(key, "recipe"),
                    is_shown=False,
                )
                for key in differing
            ),
        )
        names = project.runs.order_by("recipe_name").values_list("recipe_name", flat=True).distinct()
        self.filters = (
            TableFilter("state", "State", _STATES, "state"),
            TableFilter("recipe", "Recipe", [(name, name) for name in names], "recipe_name"),
        )
        super().__init__(request, rows, project=project)

    @property
    def actions(self) -> tuple[TableAction, ...]:  # type: ignore[override]
        return (_compare(self.project),)

    def load(self, rows: QuerySet[TrainingRun]) -> QuerySet[TrainingRun]:
        return rows.select_related("dataset_version", "model", "parent", "started_by").defer("log_tail")

    def row_url(self, row: TrainingRun) -> str:
        return reverse("training:run-detail", args=[self.project.slug, row.pk])

    def row_label(self, row: TrainingRun) -> str:
        return f"run {row.number}"


class SeedGroupTable(DataTable[SeedGroup]):
    """Runs that differ in their seed alone, as one row. options: project."""

    name = "training-runs-by-seed"
    nouns = ("recipe", "recipes")
    columns = (
        TableColumn(
            "runs",
            "Runs",
            value=lambda group: ", ".join(str(run.number) for run in group.runs),
            template="training/cells/_group_runs.html",
            is_fixed=True,
        ),
        TableColumn(
            "state",
            "State",
            value=lambda group: ", ".join(f"{count} {state}" for state, count in group.states),
            template="training/cells/_group_states.html",
        ),
        TableColumn(
            "dataset",
            "Dataset",
            value="newest.dataset_version.short_name",
            sort="newest.dataset_version.number",
            template="training/cells/_group_dataset.html",
        ),
        TableColumn("recipe", "Recipe", value="newest.recipe_title", sort="newest.recipe_title"),
        TableColumn(
            "held_out",
            "Held out",
            value="measured.mean",
            sort="measured.mean",
            kind="number",
            template="training/cells/_group_measure.html",
            help="Mean of the seeds on held-out data, with the lowest and the highest; "
            "for one seed the 95 % bootstrap interval over tasks",
        ),
        TableColumn(
            "model",
            "Models",
            value=lambda group: ", ".join(run.model_title for run in group.runs if run.model_title),
            template=_MODEL_TEMPLATE,
        ),
        TableColumn("started", "Started", value="newest.created_at", sort="newest.created_at", kind="time"),
    )

    @property
    def actions(self) -> tuple[TableAction, ...]:  # type: ignore[override]
        return (_compare(self.project),)

    def row_key(self, row: SeedGroup) -> str:
        return row.numbers

    def row_url(self, row: SeedGroup) -> str:
        return reverse("training:run-detail", args=[self.project.slug, row.newest.pk])

    def row_label(self, row: SeedGroup) -> str:
        more = len(row.runs) - 1
        return f"run {row.newest.number}" + (f" and {more} more" if more else "")


def _compare(project: Project) -> TableAction:
    return TableAction(
        "compare",
        "Compare selected",
        reverse("training:run-compare", args=[project.slug]),
        method="get",
        takes_all=False,
    )


class ModelTable(DataTable[RewardModel]):
    """options: project."""

    name = "models"
    nouns = ("model", "models")
    default_sort = "-created"
    search = ("name",)
    search_label = "Name"
    columns = (
        TableColumn(
            "model",
            "Model",
            value=lambda model: f"{model.name}@{model.version}",
            sort="name",
            template="training/cells/_model.html",
            is_fixed=True,
        ),
        TableColumn(
            "objective", "Objective", value="manifest.objective", sort=KeyTransform("objective", "manifest")
        ),
        TableColumn(
            "held_out",
            "Held out",
            value=lambda model: _main_value(model.training_run) if model.training_run else None,
            sort=_held_out("training_run__report"),
            kind="number",
            template="training/cells/_model_measure.html",
            help="Result on held-out data, with the 95 % bootstrap interval over tasks",
        ),
        TableColumn(
            "run", "Training run", value="training_run.title", template="training/cells/_model_run.html"
        ),
        TableColumn(
            "dataset",
            "Dataset",
            value="training_run.dataset_version.short_name",
            template="training/cells/_model_dataset.html",
        ),
        TableColumn(
            "parent",
            "Fine-tuned from",
            value=lambda model: model.parent and f"{model.parent.name}@{model.parent.version}",
        ),
        TableColumn("created", "Created", value="created_at", sort="created_at", kind="time"),
    )

    def load(self, rows: QuerySet[RewardModel]) -> QuerySet[RewardModel]:
        return rows.select_related("parent", "training_run__dataset_version").defer("training_run__log_tail")

    def row_url(self, row: RewardModel) -> str:
        return reverse("training:model-detail", args=[self.project.slug, row.pk])

    def row_label(self, row: RewardModel) -> str:
        return f"{row.name}@{row.version}"
