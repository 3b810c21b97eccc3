"""A model card: what a model is, what it was made of, and how good it is, in Markdown.

The headings follow Mitchell et al. (2019), "Model Cards for Model Reporting".
"""

from typing import Any

from apps.training.models import RewardModel
from apps.training.report import Measure, measures, verdict

_RULES = {
    "value": "V_T, the last value",
    "sum": "the sum of the step rewards",
    "mean": "their mean",
    "min": "the lowest",
}


def model_card(model: RewardModel) -> str:
    """Of a model and its first report, the one of its own training where it has one."""
    evaluation = model.evaluations.order_by("created_at", "pk").first()
    report = evaluation.report if evaluation else None
    parts = [
        f"# {model}",
        "A reward model made with Touchstone: it gives an agent's trajectory a number, and every step its part in it.",
        "## Model details",
        _facts(_details(model)),
        "## Training data",
        _facts(_data(model, report)),
        "## Evaluation",
        *(_evaluation(evaluation.source, report) if evaluation and report else ["Not measured here."]),
        "## Use",
        "Load it with Touchstone (`manage.py import_model PROJECT DIR`, then `deploy`), which renders trajectories as "
        "they were in training and refuses if it would not. Rewards are comparable within a task; "
        "`reward = (raw - median) / std` with the statistics above.",
    ]
    if caveats := [one["sentence"] for one in (report or {}).get("findings") or []]:
        parts += ["## Caveats", "\n".join(f"- {one}" for one in caveats)]
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
        "Reward of a trajectory": _RULES.get(manifest.get("aggregation", ""), manifest.get("aggregation")),
        "Read": manifest.get("step_rule"),
        "Raw rewards in training": f"median {reward.get('median')}, standard deviation {reward.get('std')}",
        "Criteria it scores": ", ".join(manifest.get("criteria") or {}) or None,
        "Template fingerprint": manifest.get("template_fingerprint"),
        "Tags": ", ".join(model.tags) or None,
        "Made": model.created_at.date().isoformat(),
        "Made by version": manifest.get("code_version"),
    }


def _data(model: RewardModel, report: dict[str, Any] | None) -> dict[str, Any]:
    dataset_version = model.manifest.get("snapshot") or {}
    trained = (report or {}).get("train") or {}
    run = model.training_run
    kinds = (trained.get("by_objective") or {}).items()
    made = (trained.get("generated") or {}).items()
    return {
        "Dataset": dataset_version.get("name"),
        "Its hash": dataset_version.get("hash"),
        "Judgements": ", ".join(f"{count} for {name}" for name, count in kinds) or None,
        "Generated comparisons": ", ".join(f"{count} by {name}" for name, count in made) or None,
        "Began with the weights of": str(model.parent) if model.parent else None,
        "Recipe": f"{run.recipe_name}, seed {run.seed}" if run else None,
    }


def _evaluation(source: str, report: dict[str, Any]) -> list[str]:
    rows = [
        "| measure | this model | n | strongest rule without a model |",
        "|---|---|---|---|",
        *(_row(one) for one in measures(report)),
    ]
    return [
        f"On `{source}`. {verdict(report).sentence}",
        "\n".join(rows),
        "Intervals are 95 %, by a bootstrap over tasks.",
    ]


def _row(one: Measure) -> str:
    interval = f" [{one.interval[0]:.3f}, {one.interval[1]:.3f}]" if one.interval else ""
    rule = one.baselines[0] if one.baselines else None
    beside = f"{rule.rule}: {rule.value:.3f}" if rule else ""
    return f"| {one.title}: {one.name} | {one.value:.3f}{interval} | {one.n} | {beside} |"


def _facts(found: dict[str, Any]) -> str:
    known = [f"- **{name}**: {value}" for name, value in found.items() if value not in (None, "")]
    return "\n".join(known) or "Unknown."
