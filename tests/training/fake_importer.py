"""Stands in for `python -m workers.importing DIR`: recognises every checkpoint, and refuses the label `none`."""

import json
import sys
from pathlib import Path

FOUND = {
    "type": "sequence-classifier",
    "architecture": "LlamaForSequenceClassification",
    "because": "config.json names it",
    "labels": ["LABEL_0"],
    "reward": "the model's one output, its logit",
    "template": "its own chat template",
    "reads": "at the last token of each agent step",
    "parameters": 8_030_000_000,
    "bytes": 16_060_000_000,
    "max_tokens": 16384,
    "licence": "apache-2.0",
    "notes": ["Messages after the last one of the agent are not read."],
}


def main(folder: Path) -> int:
    request = json.loads((folder / "request.json").read_text())
    if request["options"].get("label") == "none":
        sys.stderr.write("label = 'none' is no output of the model; it has LABEL_0.\n")
        return 2
    assert (Path(request["checkpoint"]) / "config.json").is_file()
    (folder / "recognised.json").write_text(json.dumps(FOUND))
    if request["dry_run"]:
        return 0
    model = folder / "model"
    model.mkdir()
    (model / "model.safetensors").write_bytes(b"weights")
    check = {"conversations": 3, "largest_difference": 2.4e-7}
    manifest = {
        "schema_version": 1,
        "objective": "bradley_terry",
        "backbone": {"kind": "decoder", "architecture": "llama"},
        "reward": {"median": 0.0, "std": 1.0},
        "imported": {**request["source"], **FOUND, "check": check, "calibration": request["calibration"]},
    }
    (model / "touchstone.json").write_text(json.dumps(manifest))
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
