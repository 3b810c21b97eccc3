"""Executes a judging: child processes of the core, each on a folder of some of what waits."""

import json
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from django.utils import timezone

from apps.core.errors import DomainError
from apps.core.jobs.job_queue import Cancelled, Heart, JobState, finish, heart
from apps.core.processes import core_subprocess
from apps.judges.asking import asking
from apps.judges.models import Judged, Judging, Spending
from apps.judges.services.judgings import keep_judged, tell_explorer, write_judgements
from apps.rubrics.models import Criterion
from apps.trajectories.selectors import stream_trajectories
from workers import schema

CHILD = "workers.judge"
AT_ONCE = 1000  # units of a child: what it holds in memory
OVERALL = "Overall"


def execute(judging: Judging) -> None:
    """Ask for what waits, keep what comes, and hand it in where that is wanted. Raises ClaimLost, Interrupted."""
    with heart(judging) as pulse:
        try:
            waiting = judging.judged.filter(state=Judged.State.WAITING).order_by("pk")
            while units := list(islice(waiting.iterator(chunk_size=AT_ONCE), AT_ONCE)):
                _ask(judging, units, pulse)
            if judging.hands_in:
                pulse.progress = {"done": 0, "total": None, "note": "Handing it in"}
                write_judgements(judging, pulse.check)
                judging.handed_in_at = timezone.now()
            tell_explorer(judging)
            finish(
                judging,
                JobState.SUCCEEDED,
                progress={},
                result=judging.result,
                handed_in_at=judging.handed_in_at,
            )
        except DomainError as error:
            finish(judging, JobState.FAILED, error=error.message, result=judging.result)
        except Cancelled:
            finish(judging, JobState.CANCELLED, result=judging.result)


def _ask(judging: Judging, units: list[Judged], pulse: Heart) -> None:
    """Have a child ask about these; none of them waits afterwards."""
    judge = judging.judge
    if judge.language_model is None:
        raise DomainError(f"The language model of {judge.name} was removed, so there is nobody to ask.")
    with tempfile.TemporaryDirectory(prefix="judging-") as scratch:
        folder = Path(scratch)
        runs = list(dict.fromkeys(run for unit in units for run in _runs(unit)))
        schema.write_trajectories(
            folder / "trajectories.jsonl.zst", stream_trajectories(runs, check=pulse.check)
        )
        _write(
            folder / "units.jsonl", ({"unit": unit.pk, "runs": list(map(str, _runs(unit)))} for unit in units)
        )
        (folder / "judged.jsonl").touch()
        read = 0

        def keep() -> None:
            nonlocal read
            with (folder / "judged.jsonl").open("rb") as new:
                new.seek(read)
                whole = new.read().rpartition(b"\n")[0]
            if whole:
                keep_judged(judging, map(json.loads, whole.splitlines()))
                read += len(whole) + 1
            counts = Counter(judging.judged.values_list("state", flat=True))
            pulse.progress = {
                "done": counts.total() - counts[Judged.State.WAITING],
                "total": counts.total(),
                "note": f"{judge.language_model} is asked",
            }

        with asking(judge.language_model, folder, Spending.Purpose.JUDGING) as one:

            def check() -> None:
                pulse.check()
                one.keep()
                keep()

            (folder / "config.json").write_text(json.dumps(_config(judging, one.server)))
            try:
                core_subprocess.run_to_end(
                    CHILD, [str(folder)], folder=folder, what="The judging", check=check, given=one.given
                )
            finally:
                keep()
        result = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    judging.result = _with(judging.result, result)


def _config(judging: Judging, server: Mapping[str, Any]) -> dict[str, Any]:
    judge = judging.judge
    return {
        "server": server,
        "mode": judge.mode,
        "criteria": [criterion_of(one, judge.mode) for one in judge.asks],
        "version": judging.prompt,
        "samples": judge.samples,
        "guidelines": judge.guidelines,
    }


def criterion_of(criterion: Criterion | None, mode: str) -> dict[str, Any]:
    if criterion is None:
        return {"name": OVERALL, "definition": "Which run does the task better, all in all."}
    told = {
        "name": criterion.name,
        "definition": criterion.definition,
        "good_example": criterion.good_example,
        "bad_example": criterion.bad_example,
    }
    if mode == "compare":
        return told
    return told | {"low": criterion.scale_low, "high": criterion.scale_high}


def _runs(unit: Judged) -> list[int]:
    return [unit.trajectory_id, *([] if unit.other_id is None else [unit.other_id])]


def _with(before: Mapping[str, Any], result: Mapping[str, Any]) -> dict[str, Any]:
    """What this judging asked until now, all its children together."""
    usage = Counter(before.get("usage", {}))
    usage.update(result["usage"])
    return {"usage": dict(usage), "prompts": sorted({*before.get("prompts", ()), *result["prompts"]})}


def _write(path: Path, lines: Iterable[dict[str, Any]]) -> None:
    with path.open("w", encoding="utf-8") as out:
        out.writelines(json.dumps(line) + "\n" for line in lines)
