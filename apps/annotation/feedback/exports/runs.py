"""Runs with what was said of them: ATIF documents whose `extra.feedback` are judgements.

A judgement is the import record without its task; where it is of several runs, each of them has it, and they are named
by the session_id of their documents. `this` is the key, or the place in `items`, of the run it stands in.
"""

import json
from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from typing import Any

from apps.accounts.models import Project
from apps.annotation.feedback.exports.lines import line_of, made, said_records
from apps.trajectories.exports import export_documents
from workers import schema
from workers.schema.records import KIND_OF, record_trajectories


def export_atif(*, project: Project, filters: dict[str, Any]) -> Iterator[str]:
    """A document a line, task by task."""
    found = said_records(project, filters)
    for _, of_task in groupby(found, key=lambda each: each[0].annotation.assignment.item.task_id):
        runs: dict[str, schema.Trajectory] = {}
        said: dict[str, list[dict[str, Any]]] = {}
        for one, record in of_task:
            judged = record_trajectories(record)
            runs |= {str(run.id): run for run in judged}
            line = line_of(record, lambda run: run.id)
            del line["task"]
            line |= {
                "kind": KIND_OF[type(record)],
                "campaign": one.annotation.assignment.item.campaign.name,
                "made": made(one.annotation),
            }
            kept = {key: value for key, value in line.items() if value is not None or key == "first_error"}
            for place, run in enumerate(judged):
                this = {"this": place} if "items" in line else {"this": "ab"[place]} if "a" in line else {}
                said.setdefault(str(run.id), []).append(kept | this)
        documents = export_documents(project, runs)
        names = _names(documents)
        for key, document in documents.items():
            document["session_id"] = names[key]
            feedback = [_renamed(line, names) for line in said[key]]
            document["extra"] = document.get("extra", {}) | {"feedback": feedback}
            yield json.dumps(document, ensure_ascii=False) + "\n"


def _names(documents: dict[str, dict[str, Any]]) -> dict[str, str]:
    """The session_id of each; where several have one, as a run and what came late of its trace, with our key."""
    given = Counter(document["session_id"] for document in documents.values())
    return {
        key: name if given[name := document["session_id"]] == 1 else f"{name} ({key})"
        for key, document in documents.items()
    }


def _renamed(line: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    """With session ids in place of our keys."""
    of_one = {key: names[line[key]] for key in ("a", "b", "trajectory") if key in line}
    return line | of_one | ({"items": [names[one] for one in line["items"]]} if "items" in line else {})
