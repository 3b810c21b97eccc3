"""What must hold when the dust has settled, asked of the database and the processes, not of the product."""

import fcntl
import uuid
from pathlib import Path

from safetensors.torch import load_file
from torch import Tensor

from tests.faults.ledger import Ledger
from tests.faults.stack import Stack, family, until

SETTLE = 150.0  # seconds until everything that was begun has ended


def settle(stack: Stack) -> None:
    """Wait until no job waits or runs."""
    states = " UNION ALL ".join(
        f"SELECT state FROM {table}"
        for table in ("training_run", "datasets_datasetversion", "trajectories_import")
    )
    busy = f"SELECT count(*) FROM ({states}) AS jobs WHERE state IN ('queued', 'running')"

    def quiet() -> bool:
        stack.tend()
        return stack.query(busy) == [(0,)]

    until(quiet, SETTLE, f"jobs still wait or run:\n{stack.said()}")


def check(stack: Stack, ledger: Ledger, reference: Path) -> None:
    """Everything but what must be gone after the stop."""
    _judgements(stack, ledger)
    _queue(stack, ledger)
    _trajectories(stack, ledger)
    _runs(stack, ledger, reference)
    _nothing_held(stack, ledger)


def _judgements(stack: Stack, ledger: Ledger) -> None:
    """Each acknowledged annotation is there once, and says what was said."""
    rows = stack.query(
        "SELECT s.idempotency_key, s.assignment_id, a.swapped, p.choice, p.strength, s.is_surplus "
        "FROM annotation_annotation s JOIN annotation_assignment a ON a.id = s.assignment_id "
        "LEFT JOIN annotation_preference p ON p.annotation_id = s.id WHERE s.origin = 'person'"
    )
    found: dict[uuid.UUID, list[tuple[int, str]]] = {}
    for key, assignment, swapped, choice, strength, _ in rows:
        if choice in ("a", "b"):
            left = (choice == "a") != swapped
            choice = f"{'left' if left else 'right'}-{strength}"
        found.setdefault(key, []).append((assignment, choice))
    for key, said in ledger.judgements.items():
        if found.get(key) != [said]:
            ledger.violate(f"the acknowledged judgement {key} {said} is stored as {found.get(key)}")
    torn = [key for key, said in found.items() if len(said) != 1 or said[0][1] is None]
    if torn:
        ledger.violate(f"annotations without exactly one preference: {torn[:5]}")


def _queue(stack: Stack, ledger: Ledger) -> None:
    wrong = stack.query(
        "SELECT i.id, i.claimed_count, i.completed_count, i.overlap, c.locked, c.counted "
        "FROM annotation_item i JOIN LATERAL ("
        "  SELECT count(*) FILTER (WHERE a.state = 'locked') AS locked, count(*) FILTER (WHERE EXISTS ("
        "    SELECT 1 FROM annotation_annotation s WHERE s.assignment_id = a.id AND NOT s.is_surplus)) AS counted "
        "  FROM annotation_assignment a WHERE a.item_id = i.id) c ON true "
        "WHERE i.claimed_count <> c.locked + c.counted OR i.completed_count <> c.counted OR c.counted > i.overlap"
    )
    if wrong:
        ledger.violate(
            f"items whose counts are wrong (id, taken, done, wanted, locked, counted): {wrong[:5]}"
        )
    for assignment, state in ledger.left.items():
        if stack.query("SELECT state FROM annotation_assignment WHERE id = %s", assignment) != [(state,)]:
            ledger.violate(f"assignment {assignment} was acknowledged as {state}")


def _trajectories(stack: Stack, ledger: Ledger) -> None:
    rows = stack.query(
        "SELECT k.external_id, count(t.id) FROM trajectories_task k JOIN trajectories_trajectory t ON t.task_id = k.id "
        "WHERE k.external_id = ANY(%s) GROUP BY 1",
        ledger.trajectories,
    )
    there = dict(rows)
    bad = [task for task in ledger.trajectories if there.get(task) != 1]
    if bad:
        ledger.violate(f"{len(bad)} acknowledged trajectories are not there exactly once: {bad[:3]}")
    torn = stack.query(
        "SELECT t.id FROM trajectories_trajectory t WHERE t.step_count <> "
        "(SELECT count(*) FROM trajectories_step s WHERE s.trajectory_id = t.id) LIMIT 5"
    )
    if torn:
        ledger.violate(f"trajectories without all their steps: {torn}")


def _runs(stack: Stack, ledger: Ledger, reference: Path) -> None:
    """Finished once, with the weights of an uninterrupted run; or failed with a sentence."""
    rows = stack.query(
        "SELECT r.id, r.state, r.error, count(m.id), min(m.artifact) FROM training_run r "
        "LEFT JOIN training_rewardmodel m ON m.training_run_id = r.id GROUP BY r.id"
    )
    there = {row[0]: row for row in rows}
    weights = weights_of(reference)
    for number in ledger.runs:
        if number not in there:
            ledger.violate(f"the acknowledged run {number} is gone")
    for number, state, error, models, artifact in rows:
        if state == "failed" and error.strip() and models == 0:
            continue
        if state != "succeeded" or models != 1 or error:
            ledger.violate(f"run {number} is {state} with {models} models and the error {error!r}")
            continue
        got = weights_of(stack.home / "artifacts" / artifact)
        differences = [name for name in weights if name not in got or not got[name].equal(weights[name])]
        if differences or got.keys() != weights.keys():
            ledger.violate(
                f"run {number} did not end with the weights of an uninterrupted one: {differences[:3]}"
            )


def weights_of(artifact: Path) -> dict[str, Tensor]:
    files = sorted(artifact.glob("*.safetensors"))
    return {f"{path.name}/{name}": tensor for path in files for name, tensor in load_file(path).items()}


def _nothing_held(stack: Stack, ledger: Ledger) -> None:
    """No transaction left open, no advisory lock kept; a lease that has run out is taken back."""
    until(
        lambda: (
            not stack.query(
                "SELECT 1 FROM pg_stat_activity WHERE state LIKE 'idle in transaction%' "
                "AND state_change < now() - interval '5 s'"
            )
        ),
        30,
        "a transaction stays open",
    )
    here = "database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    held = stack.query(f"SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND {here}")
    if held != [(0,)]:
        ledger.violate(f"advisory locks are still held: {held}")
    stack.query(
        "UPDATE annotation_assignment SET lock_expires_at = now() - interval '1 s' WHERE state = 'locked' RETURNING 1"
    )
    until(
        lambda: stack.query("SELECT count(*) FROM annotation_assignment WHERE state = 'locked'") == [(0,)],
        60,
        "leases that ran out are not taken back",
    )
    _queue(stack, ledger)


def check_secrets(stack: Stack, ledger: Ledger, secrets: list[str]) -> None:
    """None of them is in a log, whatever went wrong and was logged for it; and lines do carry their ids."""
    logs = [stack.output, *(stack.home / "logs").iterdir()]
    texts = {path.name: path.read_text(errors="replace") for path in logs}
    for name, text in texts.items():
        for number, secret in enumerate(secrets):
            if len(secret) < 8 or secret in text:
                ledger.violate(f"secret {number} is too short to look for, or is in {name}")
    trained = texts["gpu.log"] + texts[stack.output.name]  # the second worker, which is not the supervisor's
    if " request=" not in texts["web.log"] or " job=trainingrun-" not in trained:
        ledger.violate("log lines do not say what request or job they are about")


def check_gone(home: Path, ledger: Ledger) -> None:
    """After the stop nothing works for this home any more, and its locks are free."""
    try:
        until(lambda: not family(home), 30, "processes are left")
    except AssertionError:
        ledger.violate(f"orphans: {[' '.join(process.cmdline()) for process in family(home)]}")
    for name in ("up.lock", "postgres.lock"):
        if not (home / name).exists():
            continue
        with (home / name).open() as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                ledger.violate(f"{name} is still held")
