"""A model card: what a model is, what it was made of, and how good it is, in Markdown.

The headings follow Mitchell et al. (2019), "Model Cards for Model Reporting".
"""

from typing import Any

from apps.training.models import RewardModel
from apps.training.report import Measure, measures, summarize

_AGGREGATIONS = {
    "value": "the last value V_T",
    "sum": "the sum of the step rewards",
    "mean": "the mean of the step rewards",
    "min": "the lowest step reward",
}


def model_card(model: RewardModel) -> str:
    """Of a model and its first report: that of its training, where it has one."""
    evaluation = model.evaluations.order_by("created_at", "pk").first()
    report = evaluation.report if evaluation else None
    parts = [
        f"# {model}",
        "A reward model made with Touchstone: it scores the trajectory of an agent, and assigns credit to each step.",
        "## Model details",
        _facts(_details(model)),
        "## Training data",
        _facts(_data(model, report)),
        "## Evaluation",
        *(
            _evaluation(evaluation.source, report)
            if evaluation and report
            else ["No evaluation in this project."]
        ),
        "## Use",
        "Load it with Touchstone (`manage.py import_model PROJECT DIR`, then `deploy`), which renders trajectories as "
        "in training, and refuses the model if it cannot. Rewards are comparable within a task; "
        "`reward = (raw - median) / std` with the statistics above.",
    ]
    if caveats := [finding["sentence"] for finding in (report or {}).get("findings") or []]:
        parts += ["## Caveats", "\n".join(f"- {caveat}" for caveat in caveats)]
    return "\n\n".join(parts) + "\n"


def _details(model: RewardModel) -> dict[str, Any]:
    manifest = model.manifest
    backbone = manifest.get("backbone") or {}
    if not isinstance(backbone, dict):
        backbone = {"kind": backbone}
    reward = manifest.get("reward") or {}
    return {
        "Objective": manifest.get("objective"),
        "Backbone": ", ".join(f"{key} {value}" for key, value in backbone.items() if key != "weights_sha256"),
        "Reward of a trajectory": _AGGREGATIONS.get(
            manifest.get("aggregation", ""), manifest.get("aggregation")
        ),
        "Step rule": manifest.get("step_rule"),
        "Raw rewards in training": f"median {reward.get('median')}, standard deviation {reward.get('std')}",
        "Criteria": ", ".join(manifest.get("criteria") or {}) or None,
        "Template fingerprint": manifest.get("template_fingerprint"),
        "Tags": ", ".join(model.tags) or None,
        "Created": model.created_at.date().isoformat(),
        "Code version": manifest.get("code_version"),
    }


def _data(model: RewardModel, report: dict[str, Any] | None) -> dict[str, Any]:
    dataset_version = model.manifest.get("snapshot") or {}
    trained = (report or {}).get("train") or {}
    run = model.training_run
    kinds = (trained.get("by_objective") or {}).items()
    weights = trained.get("weights") or {}
    made = (trained.get("generated") or {}).items()
    return {
        "Dataset": dataset_version.get("name"),
        "Dataset hash": dataset_version.get("hash"),
        "Feedback records": ", ".join(f"{count} for {name}" for name, count in kinds) or None,
        "Weights of objectives": ", ".join(f"{weight:.3g} {name}" for name, weight in weights.items())
        if len(weights) > 1
        else None,
        "Generated comparisons": ", ".join(f"{count} by {name}" for name, count in made) or None,
        "Fine-tuned from": str(model.parent) if model.parent else None,
        "Recipe": f"{run.recipe_name}, seed {run.seed}" if run else None,
    }


def _evaluation(source: str, report: dict[str, Any]) -> list[str]:
    rows = [
        "| measure | this model | n | best baseline |",
        "|---|---|---|---|",
        *(_row(measure) for measure in measures(report)),
    ]
    return [
        f"On `{source}`. {summarize(report).sentence}",
        "\n".join(rows),
        "Intervals are 95 %, by task: Wilson's with cluster-robust errors for shares, a bootstrap for other numbers.",
    ]


def _row(measure: Measure) -> str:
    interval = f" {measure.shown_interval}" if measure.interval else ""
    best = [baseline for baseline in measure.baselines if baseline.is_best]
    baseline = next(iter([*best, *measure.baselines]), None)
    strongest = f"{baseline.name}: {baseline.shown_value}" if baseline else ""
    return (
        f"| {measure.title}: {measure.name} | {measure.shown_value}{interval} | {measure.n} | {strongest} |"
    )


def _facts(found: dict[str, Any]) -> str:
    known = [f"- **{name}**: {value}" for name, value in found.items() if value not in (None, "")]
    return "\n".join(known) or "Unknown."
