"""pairs.csv: the last words of each compared trajectory of pairs.jsonl; items.jsonl: what `score` takes."""

import csv
import json
from pathlib import Path
from typing import Any


def words(messages: list[dict[str, Any]] | str) -> str:
    if isinstance(messages, str):
        return messages
    return " ".join(
        each["content"] for each in messages if each["role"] in ("user", "assistant") and each["content"]
    )


rows = [json.loads(line) for line in Path("pairs.jsonl").read_text().splitlines()]
with Path("pairs.csv").open("w", newline="") as file:
    writer = csv.writer(file)
    writer.writerow(["prompt", "chosen", "rejected"])
    writer.writerows([words(row[name]) for name in ("prompt", "chosen", "rejected")] for row in rows)
items = [{"prompt": words(row["prompt"]), "response": words(row["chosen"])} for row in rows[:5]]
Path("items.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items))
