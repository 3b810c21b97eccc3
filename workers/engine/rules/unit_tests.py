"""What an external test runner found, in the forms in which runners report it."""

from collections.abc import Callable, Mapping
from typing import Any

from workers.engine.rules.agent_text import agent_steps
from workers.engine.rules.references import metadata_of
from workers.errors import RewardError
from workers.schema import ScoreInput
from workers.schema.model_score import ModelScore
from workers.schema.step_parts import UnitTests

_AT = "/metadata/tests"
_FORMS = (
    'metadata.tests must be {"passed": 3, "failed": 1}, {"name of a test": true}, a report of pytest-json-report, the '
    'tests_status of a SWE-bench report, or {"error": "timed out"}.'
)
_FIXED, _KEPT = "FAIL_TO_PASS", "PASS_TO_PASS"


def passed(rule: UnitTests, item: ScoreInput, count: Callable[[str], int]) -> ModelScore:
    """verdict * (1 if all passed) + (1 - verdict) * the share that passed: 0 to 1, at the last step."""
    steps = len(agent_steps(item))
    share = _share(metadata_of(item, "tests"))
    value = rule.verdict * (share == 1) + (1 - rule.verdict) * share
    return ModelScore.at_last_step(value, steps)


def _share(found: Any) -> float:
    """The share of the tests that passed. Raises RewardError for what no runner writes, and for no test at all."""
    if not isinstance(found, Mapping) or not found:
        raise RewardError(_FORMS, pointer=_AT)
    if isinstance(found.get("error"), str):
        return 0.0
    if "tests_status" in found and isinstance(found["tests_status"], Mapping):
        found = found["tests_status"]
    if _FIXED in found:
        return _of_swe_bench(found)
    if isinstance(found.get("summary"), Mapping):
        found = found["summary"]
    if _is_count(found.get("passed")) or _is_count(found.get("failed")):
        return _of_counts(found)
    if all(isinstance(value, bool) for value in found.values()):
        return sum(found.values()) / len(found)
    raise RewardError(_FORMS, pointer=_AT)


def _of_swe_bench(status: Mapping[str, Any]) -> float:
    """By tests_status of swebench's report.json: {"FAIL_TO_PASS": {"success": [...], "failure": [...]}, ...}."""
    found = {}
    for key in (_FIXED, _KEPT):
        part = status.get(key, {"success": [], "failure": []} if key == _KEPT else None)
        lists = [part.get(side) for side in ("success", "failure")] if isinstance(part, Mapping) else []
        if len(lists) != 2 or not all(isinstance(each, list) for each in lists):
            raise RewardError(
                f"{key} of a SWE-bench report must have the lists `success` and `failure`.",
                pointer=f"{_AT}/{key}",
            )
        found[key] = [len(each) for each in lists if isinstance(each, list)]
    good, bad = found[_FIXED]
    if not good + bad:
        raise RewardError("FAIL_TO_PASS names no test, so nothing was tested.", pointer=f"{_AT}/{_FIXED}")
    return 0.0 if found[_KEPT][1] else good / (good + bad)


def _of_counts(found: Mapping[str, Any]) -> float:
    """By counts of outcomes, as pytest names them. What was skipped or was expected to fail is no test."""
    counts = {key: found.get(key, 0) for key in ("passed", "failed", "error", "errors", "xpassed")}
    if wrong := next((key for key, value in counts.items() if not _is_count(value)), None):
        raise RewardError(f"{wrong} must be a whole number of tests, 0 or more.", pointer=f"{_AT}/{wrong}")
    good = counts["passed"] + counts["xpassed"]
    tests = good + counts["failed"] + counts["error"] + counts["errors"]
    if not tests:
        raise RewardError("the runner ran no test; send what it found, or an `error`.", pointer=_AT)
    return float(good / tests)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
