"""Trajectories with their feedback: ATIF documents with records in `extra.feedback`.

A record is the import record without its task. A record on several trajectories is in each of their documents, and they
are named by the session_id of the documents. `this` is the key, or the index in `items`, of the document's trajectory.
"""

import json
from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from typing import Any

from apps.accounts.models import Project
from apps.annotation.feedback.exports.jsonl_csv import iter_exported_records, provenance, to_import_record
from apps.trajectories.exports import export_documents
from workers import schema
from workers.schema.atif_model import UNFIT
from workers.schema.records import KIND_OF, record_trajectories


def export_atif(*, project: Project, filters: dict[str, Any]) -> Iterator[str]:
    """One document per line, task by task."""
    found = iter_exported_records(project, filters)
    for _, task_entries in groupby(found, key=lambda entry: entry[0].annotation.assignment.item.task_id):
        trajectories: dict[str, schema.Trajectory] = {}
        feedback_by_trajectory: dict[str, list[dict[str, Any]]] = {}
        for stored, record in task_entries:
            compared = record_trajectories(record)
            trajectories |= {str(trajectory.id): trajectory for trajectory in compared}
            line = to_import_record(record, lambda trajectory: trajectory.id)
            del line["task"]
            line |= {
                "kind": KIND_OF[type(record)],
                "campaign": stored.annotation.assignment.item.campaign.name,
                "made": provenance(stored.annotation),
            }
            kept = {key: value for key, value in line.items() if value is not None or key == "first_error"}
            for place, trajectory in enumerate(compared):
                this = {"this": place} if "items" in line else {"this": "ab"[place]} if "a" in line else {}
                feedback_by_trajectory.setdefault(str(trajectory.id), []).append(kept | this)
        documents = export_documents(project, trajectories)
        names = _names(documents)
        for key, document in documents.items():
            if names[key] != document["session_id"]:
                # Reading the document gives the source's own id again.
                unfit = document["extra"].setdefault(UNFIT, {})
                unfit["session_id"] = document["session_id"]
                document["session_id"] = names[key]
            feedback = [_renamed(line, names) for line in feedback_by_trajectory[key]]
            document["extra"] = document.get("extra", {}) | {"feedback": feedback}
            yield json.dumps(document, ensure_ascii=False) + "\n"


def _names(documents: dict[str, dict[str, Any]]) -> dict[str, str]:
    """The session_id of each document; with our key where several documents share one."""
    given = Counter(document["session_id"] for document in documents.values())
    return {
        key: name if given[name := document["session_id"]] == 1 else f"{name} ({key})"
        for key, document in documents.items()
    }


def _renamed(line: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    """The record with session ids instead of our keys."""
    renamed = {key: names[line[key]] for key in ("a", "b", "trajectory") if key in line}
    return line | renamed | ({"items": [names[key] for key in line["items"]]} if "items" in line else {})
