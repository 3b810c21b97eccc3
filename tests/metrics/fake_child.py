"""Stands in for `workers.induce` where its findings do not matter: a metric for each of two subjects, told by words."""

import json
import sys
from pathlib import Path

from workers.schema import read_trajectories

SUBJECTS = ("order", "")  # what a point is about, by a word in it; the rest is the last


def main(folder: Path) -> int:
    comments = [json.loads(line) for line in (folder / "comments.jsonl").read_text().splitlines()]
    groups = json.loads(path.read_text()) if (path := folder / "groups.json").is_file() else None
    groups = [group for group in groups if group["stands"]] if groups is not None else None
    previous = json.loads(path.read_text()) if (path := folder / "previous.json").is_file() else []
    if any("refuse" in comment["text"] for comment in comments):
        sys.stderr.write("These comments are refused.\n")
        return 2
    aspects = []
    for number, one in enumerate(comments):
        if groups is None:
            metric = next(n for n, word in enumerate(SUBJECTS) if word in one["text"])
        else:
            key = [one["id"], one["text"]]
            metric = next((n for n, group in enumerate(groups) if key in group["points"]), None)
        aspects.append(
            {
                "id": number,
                "comment": one["id"],
                "trajectory": one["trajectory"],
                "feedback": one["text"],
                "behaviour": "did it",
                "sign": one["sign"],
                "step": one["steps"][0],
                "chance": 1.0,
                "metric": metric,
                "covered": number % 2 == 0,
                "example": number if number < 4 else None,
                "at": [float(number), 0.0],
            }
        )
    count = len(SUBJECTS) if groups is None else len(groups)
    runs = [str(trajectory.id) for trajectory in read_trajectories(folder / "trajectories.jsonl.zst")]
    traits = [
        {
            "trajectory": run,
            "metric": metric,
            "sign": (1, -1, 0)[place % 3],
            "value": (0.5, -0.5, 0.0)[place % 3],
            "step": 1,
            "because": 0,
            "reason": "",
        }
        for place, run in enumerate(runs)
        for metric in range(count)
    ]
    known = {
        record["name"]: {"id": record["id"], "name": record["name"], "alike": 1.0} for record in previous
    }
    metrics = [{"name": f"metric {n}", "before": known.get(f"metric {n}")} for n in range(count)]
    result = {
        "metrics": metrics,
        "comments": len(comments),
        "aspects": len(aspects),
        "trajectories": len(runs),
        "judged": len(runs),
        "coverage": 0.5,
        "redundancy": 0.25,
        "warnings": ["A word of warning."],
        "left_out": [],
    }
    if groups is None:
        shares = {"metrics": 2, "coverage": 0.5, "redundancy": 0.25, "n": 4, "trajectories": 2}
        result |= {"held_out": shares, "baselines": {"one metric": shares}, "curve": []}
    for name, lines in (("aspects", aspects), ("traits", traits)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (folder / "result.json").write_text(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
