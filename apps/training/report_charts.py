"""The charts of an evaluation report, as charts.js takes them."""

from collections.abc import Mapping, Sequence
from typing import Any

from apps.core.share_interval import wilson_interval


def calibration_chart(report: dict[str, Any] | None) -> dict[str, Any] | None:
    """For charts.js: accuracy by confidence, with the diagonal of a calibrated model."""
    curve = ((report or {}).get("calibration") or {}).get("curve")
    if not curve:
        return None
    return {
        "kind": "line",
        "x": {"name": "confidence", "share": True, "min": 0.5, "max": 1},
        "y": {"name": "accuracy", "share": True, "min": 0, "max": 1},
        "n": f"n = {sum(count for *_, count in curve):,} comparisons, taken as independent by the 95 % intervals",
        "series": [
            {
                "name": "model",
                "points": [[confidence, right] for confidence, right, _ in curve],
                "counts": [count for *_, count in curve],
                "intervals": [
                    [confidence, *wilson_interval(right * count, count)] for confidence, right, count in curve
                ],
            },
            {"name": "calibrated", "points": [[0.5, 0.5], [1, 1]], "dashed": True},
        ],
    }


def best_of_n_chart(report: dict[str, Any] | None) -> dict[str, Any] | None:
    """For charts.js: success rate of the trajectory with the highest reward of n, of a random one, and of the best."""
    curve = ((report or {}).get("outcome") or {}).get("best_of_n") or []
    if len(curve) < 2:
        return None
    names = {"chosen": "highest reward", "random": "random", "best": "oracle"}
    return _share_lines(curve, names, x="n", x_name="n", y_name="success rate")


def over_optimisation_chart(report: dict[str, Any] | None) -> dict[str, Any] | None:
    """For charts.js: what reward and outcome gain from the best of n, by the square root of its KL divergence."""
    found = ((report or {}).get("outcome") or {}).get("over_optimisation")
    if not found:
        return None
    return {
        "kind": "line",
        "x": {"name": "√KL, nats"},
        "y": {"name": "gain, standard deviations"},
        "series": [
            {
                "name": label,
                "points": [
                    [round(point["kl"] ** 0.5, 4), round(point[name], 4)] for point in found["points"]
                ],
            }
            for name, label in (("reward", "reward"), ("gold", "outcome"))
        ],
    }


_REINFORCEMENT_SERIES = {  # by chart: its y axis, and the series by their names in the report
    "rights": (
        {"name": "share of verdicts", "share": True, "min": 0, "max": 1},
        {
            "right": "correct",
            "right_single": "single scores in order",
            "agrees": "agrees with the other order",
            "formed": "complete critique",
        },
    ),
    "lengths": ({"name": "critique", "unit": "tokens", "min": 0}, {"length": "tokens"}),
    "entropies": (
        {"name": "entropy", "unit": "nats", "min": 0},
        {"entropy": "entropy per token", "divergence": "divergence"},
    ),
}


def reinforcement_charts(report: dict[str, Any] | None) -> dict[str, dict[str, Any]]:
    """For charts.js, by name: verdicts, critiques and entropy of a generative model during reinforcement learning."""
    curve = ((report or {}).get("train") or {}).get("reinforced") or []
    if len(curve) < 2:
        return {}
    return {
        name: {
            "kind": "line",
            "x": {"name": "training step"},
            "zoom": True,
            "smooth": True,
            "y": axis,
            "series": [
                {"name": label, "points": [[point["step"], point[key]] for point in curve]}
                for key, label in series.items()
                if key in curve[0]  # older reports, and recipes, have no single scores
            ],
        }
        for name, (axis, series) in _REINFORCEMENT_SERIES.items()
    }


def violations_chart(report: dict[str, Any] | None) -> dict[str, Any] | None:
    """For charts.js: shares of trajectories with an alarm, by agent steps seen."""
    curve = ((report or {}).get("violations") or {}).get("curve") or []
    if not curve:
        return None
    names = {
        "detected": "alarm, with a violation",
        "violated": "violation has come",
        "false": "alarm, without a violation",
    }
    return _share_lines(curve, names, x="seen", x_name="agent steps seen", y_name="trajectories")


def _share_lines(
    curve: Sequence[Mapping[str, Any]], names: Mapping[str, str], *, x: str, x_name: str, y_name: str
) -> dict[str, Any]:
    """For charts.js: a line for each of the names, keys of the curve's points; all but the first are dashed."""
    first = next(iter(names))
    return {
        "kind": "line",
        "x": {"name": x_name},
        "y": {"name": y_name, "share": True, "min": 0, "max": 1},
        "series": [
            {"name": label, "points": [[point[x], point[name]] for point in curve], "dashed": name != first}
            for name, label in names.items()
        ],
    }
