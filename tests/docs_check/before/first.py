"""What a newcomer has: pairs.jsonl and pairs.csv, comparisons of short answers; and items.jsonl, which `score` takes.

COMPARISONS: how many, at most 96.
"""

import csv
import json
import os
from pathlib import Path

THINGS = (
    "parcel",
    "refund",
    "invoice",
    "voucher",
    "charger",
    "jacket",
    "kettle",
    "lamp",
    "label",
    "tent",
    "desk",
    "bag",
)
QUESTIONS = (
    "Where is my {}?",
    "When do I get my {}?",
    "Can I change my {}?",
    "Why is my {} late?",
    "Can I cancel my {}?",
    "Who sends my {}?",
    "Is my {} insured?",
    "Did you see my {}?",
)
CITIES = ("Bern", "Graz", "Lyon", "Turin", "Porto", "Ghent", "Malmo")
# No five words in a row are those of another answer: near-copies on both sides of a split are a finding of the report.
GOOD = (
    "Your {thing} left {city} on day {n} and arrives by {later} o'clock.",
    "Sorry for that: {city} sends your {thing} within {n} hours, at {later} at the latest.",
    "I checked order {n}: {city} confirms your {thing} for day {later}.",
)
BAD = ("No idea.", "Ask {city} about {n}.", "Not our problem.", "Wait {n} weeks.")

rows = []
for number in range(int(os.environ.get("COMPARISONS", "60"))):
    thing, city = THINGS[number % len(THINGS)], CITIES[number % len(CITIES)]
    words = {"thing": thing, "city": city, "n": number + 2, "later": number + 5}
    question = QUESTIONS[number // len(THINGS)].format(thing)
    rows.append(
        {
            "prompt": question,
            "chosen": GOOD[number % 3].format(**words),
            "rejected": BAD[number % 4].format(**words),
        }
    )
Path("pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
with Path("pairs.csv").open("w", newline="") as file:
    writer = csv.DictWriter(file, ["prompt", "chosen", "rejected"])
    writer.writeheader()
    writer.writerows(rows)
items = [{"prompt": row["prompt"], "response": row["chosen"]} for row in rows[:5]]
Path("items.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items))
