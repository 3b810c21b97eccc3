"""ATIF (Agent Trajectory Interchange Format), 1.4 to 1.8. Its steps count from 1, ours from 0."""

from typing import Any

from workers.schema import Trajectory, from_atif

SIGN = "`schema_version` starts with ATIF"


def sniff(document: Any) -> bool:
    return isinstance(document, dict) and str(document.get("schema_version", "")).startswith("ATIF")


def read(document: Any) -> Trajectory:
    return from_atif(document)
