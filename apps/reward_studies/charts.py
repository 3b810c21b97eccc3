"""Charts of reward studies, for charts.js."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

Chart = dict[str, Any]
PROBE_LABELS = {
    "repeat": "Repeat the last step",
    "pad": "Pad the answer",
    "flatter": "Flatter",
    "empty": "Empty answer",
    "copy": "Copy the task",
}


def weight_chart(result: Mapping[str, Any]) -> Chart:
    """Shares, since weights are in the units of their components."""
    parts = result["components"]
    return {
        "kind": "bar",
        "x": {"labels": [part["name"] for part in parts]},
        "y": {"name": "share of the reward's variance", "share": True},
        "series": [{"name": "share", "points": [round(part["share"], 4) for part in parts]}],
    }


def accuracy_chart(result: Mapping[str, Any]) -> Chart:
    names = {"fitted": "Fitted", "current": "As they are", "equal": "All weights 1", "single": "Best single"}
    values = [result["accuracy"][name] for name in names]
    return {
        "kind": "bar",
        "x": {"labels": list(names.values())},
        "y": {"name": "held-out pairs in the right order", "share": True, "min": 0, "max": 1},
        "series": [
            {
                "name": "accuracy",
                "points": [value["value"] for value in values],
                "intervals": [[place, value["low"], value["high"]] for place, value in enumerate(values)],
            }
        ],
        "n": f"n = {result['pairs']:,} pairs of {result['tasks']:,} tasks; 95 % intervals over tasks",
    }


def path_chart(result: Mapping[str, Any]) -> Chart:
    """From the strongest penalty to the weakest, as usual for L1 paths."""
    path = result["path"]
    return {
        "kind": "line",
        "x": {"name": "penalty, weaker to the right (10 to the power of −x)"},
        "y": {"name": "weight by standard deviation of the component"},
        "series": [
            {
                "name": name,
                "points": [
                    [round(-math.log10(point["strength"]), 3), round(point["weights"][name], 4)]
                    for point in path
                ],
            }
            for name in path[0]["weights"]
        ],
    }


def trade_off_chart(trade_off: Mapping[str, Any]) -> Chart:
    points = trade_off["points"]
    return {
        "kind": "line",
        "x": {"name": f"share of the weight that {trade_off['first']} has", "share": True},
        "y": {"name": "mean among the best quarter, in standard deviations"},
        "series": [
            {"name": trade_off[side], "points": [[point["share"], round(point[side], 4)] for point in points]}
            for side in ("first", "second")
        ],
    }


def trade_off_accuracy_chart(trade_off: Mapping[str, Any]) -> Chart:
    return {
        "kind": "line",
        "x": {"name": f"share of the weight that {trade_off['first']} has", "share": True},
        "y": {"name": "pairs in the right order", "share": True},
        "series": [
            {
                "name": "accuracy",
                "points": [[point["share"], point["accuracy"]] for point in trade_off["points"]],
            }
        ],
    }


def share_chart(components: Sequence[Mapping[str, Any]]) -> Chart:
    intervals = [
        [place, part["low"], part["high"]] for place, part in enumerate(components) if part["low"] is not None
    ]
    series: dict[str, Any] = {"name": "share", "points": [round(part["share"], 4) for part in components]}
    return {
        "kind": "bar",
        "x": {"labels": [part["name"] for part in components]},
        "y": {"name": "share of the reward's variance", "share": True},
        "series": [series | ({"intervals": intervals} if intervals else {})],
    }


def probe_chart(probes: Mapping[str, Mapping[str, Any] | None]) -> Chart | None:
    found = {name: probe for name in PROBE_LABELS if (probe := probes.get(name)) is not None}
    if not found:
        return None
    intervals = [
        [place, probe["low"], probe["high"]]
        for place, probe in enumerate(found.values())
        if probe["low"] is not None
    ]
    series: dict[str, Any] = {
        "name": "reward gained",
        "points": [round(probe["mean"], 4) for probe in found.values()],
    }
    return {
        "kind": "bar",
        "x": {"labels": [PROBE_LABELS[name] for name in found]},
        "y": {"name": "reward gained, mean"},
        "series": [series | ({"intervals": intervals} if intervals else {})],
        "n": "95 % intervals over tasks",
    }


def step_chart(drawn: Mapping[str, Any]) -> Chart:
    """What each component adds to each step of a trajectory."""
    return {
        "kind": "line",
        "x": {"name": "step"},
        "y": {"name": "reward added"},
        "series": [
            {
                "name": name,
                "points": [
                    [index, round(value, 4)] for index, value in zip(drawn["indices"], values, strict=True)
                ],
            }
            for name, values in drawn["steps"].items()
        ],
    }
