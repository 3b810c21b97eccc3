"""Several replicas under one name: the least loaded is asked, one that fails is taken out and tried again half-open.

A batch goes to the replica with the fewest tokens outstanding. One that takes more than twice as long for a token as
the fastest counts its tokens by that factor. Every batch has the model's probe next to it, so a replica that was
started again with another model gives no reward: the batch is asked once more, of another replica. That is safe: a
score changes nothing on a server.
"""

import logging
import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from threading import Condition, Lock
from weakref import WeakSet

from apps.rewards.serving.servers.errors import RefusedRequest, ServerFailure, WrongReplica
from apps.rewards.serving.servers.replica import MOST_SECONDS, Outage, Replica, ReplicaInfo
from workers.errors import RewardError, Unavailable
from workers.schema.remote_models import Ask, Logits, LogitsPrompt, ModelProbe, WrongModel

logger = logging.getLogger(__name__)

CHECK_SECONDS = 5.0  # after which an idle replica is asked for the probe
ATTEMPTS = 2
_SLOW = 2.0  # times the fastest
_TRIAL_SECONDS = 10.0  # that a new reading waits for a trial that is going on
_PATIENCE, _LEAST_SECONDS = 20.0, 10.0  # times what a batch should take; at least


@dataclass(frozen=True, slots=True)
class ReplicaState:
    """As a page shows it. state: `serving`, `out`, `other model`, `draining`. seconds: of batches, ascending."""

    pk: int | None
    address: str
    state: str
    reason: str
    model: str
    dialect: str
    outstanding: int
    requests: int
    errors: int
    tokens: int
    tokens_per_second: float | None
    p50: float | None
    p99: float | None


class ModelReading:
    """A model as the replicas of a pool compute it. mismatches: of those that compute another one. logged: why a
    replica failed for this model alone, as the log has it, until it is well again."""

    def __init__(self, pool: "ServerPool", probe: ModelProbe) -> None:
        self.pool = pool
        self.probe = probe
        self.mismatches: dict[Replica, Outage] = {}
        self.logged: dict[Replica, str] = {}

    def __call__(self, prompts: Sequence[LogitsPrompt]) -> list[Logits]:
        return self.pool.ask(self, prompts)

    def outage_of(self, replica: Replica) -> Outage | None:
        return replica.outage or self.mismatches.get(replica)


class ServerPool:
    """name: as specs have it. Methods may be called from any thread."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._replicas: dict[str, Replica] = {}  # by address
        self._leaving: list[Replica] = []
        self._readings: WeakSet[ModelReading] = WeakSet()
        self._lock = Lock()
        self._trial_ends = Condition(self._lock)

    def follow(self, infos: Iterable[ReplicaInfo]) -> None:
        """Of those that are gone, what they were sent is still answered; `due_checks` closes them then."""
        wanted = {info.address: info for info in infos}
        with self._lock:
            before, self._replicas = self._replicas, {}
            for address, info in wanted.items():
                known = before.get(address)
                if known is None or (known.info.key, known.info.guarded) != (info.key, info.guarded):
                    self._replicas[address] = Replica(info)
                else:
                    known.info = info
                    self._replicas[address] = before.pop(address)
            self._leaving += before.values()

    def connect(self, probe: ModelProbe) -> Ask:
        """What asks for the logits of the model. Raises Unavailable or RewardError where no replica computes it."""
        reading = ModelReading(self, probe)
        until = time.monotonic() + _TRIAL_SECONDS
        failures = [self._try(reading, replica, until) for replica in self._present()]
        if not failures:
            raise RewardError(f"the server {self.name} has no replica; add the address of one.")
        if all(failures):
            raise Unavailable(f"the server {self.name} {failures[0]}.")
        self._readings.add(reading)
        return reading

    def ask(self, reading: ModelReading, prompts: Sequence[LogitsPrompt]) -> list[Logits]:
        """Sent to two replicas at most; those that were out are tried until one is well. Raises Unavailable."""
        tokens = sum(len(prompt.ids) for prompt in prompts)
        tried: list[Replica] = []
        sent, reason = 0, ""
        while sent < ATTEMPTS and (replica := self._choose(reading, tokens, tried)) is not None:
            sent += reading.outage_of(replica) is None
            tried.append(replica)
            is_last = sent >= ATTEMPTS or len(tried) >= len(self)
            try:
                return self._ask_replica(reading, replica, prompts, tokens, is_last=is_last)
            except ServerFailure as failure:
                reason = failure.reason
        raise self._unavailable(reading, reason)

    def due_checks(self) -> list[Callable[[], object]]:
        """Calls that ask replicas for the probe: those that are idle, and those whose pause is over."""
        self._close_idle_leaving()
        now, found = time.monotonic(), list[Callable[[], object]]()
        readings = list(self._readings)
        for replica in self._present():
            if not readings and now >= replica.checked_at + CHECK_SECONDS:
                found.append(partial(self._reach, replica))
            for reading in readings:
                outage = reading.outage_of(replica)
                due = replica.checked_at + CHECK_SECONDS if outage is None else outage.retry_at
                if now >= due and not replica.in_trial and not (outage is None and replica.outstanding):
                    found.append(partial(self._try, reading, replica))
        return found

    def states(self) -> list[ReplicaState]:
        with self._lock:
            return [self._state(replica) for replica in self._replicas.values()]

    @property
    def healthy(self) -> int:
        return sum(state.state == "serving" for state in self.states())

    def __len__(self) -> int:
        return len(self._replicas)

    def close(self) -> None:
        for replica in [*self._present(), *self._leaving]:
            replica.close()

    def _close_idle_leaving(self) -> None:
        with self._lock:
            idle = [replica for replica in self._leaving if not replica.outstanding and not replica.in_trial]
            self._leaving = [replica for replica in self._leaving if replica not in idle]
        for replica in idle:
            replica.close()

    def _present(self) -> list[Replica]:
        with self._lock:
            return list(self._replicas.values())

    def _choose(self, reading: ModelReading, tokens: int, tried: Sequence[Replica]) -> Replica | None:
        """The least loaded, with the tokens counted as outstanding. Where none is well, one that is not being tried."""
        with self._lock:
            there = [
                replica
                for replica in self._replicas.values()
                if not replica.info.is_draining and replica not in tried
            ]
            well = [replica for replica in there if reading.outage_of(replica) is None]
            if well:
                known = [each.seconds_per_token for each in well if each.seconds_per_token is not None]
                fastest = min(known, default=0.0)
                chosen = min(well, key=lambda each: (_load(each, tokens, fastest), each.requests))
            else:
                waiting = [replica for replica in there if not replica.in_trial]
                if not waiting:
                    return None
                chosen = min(waiting, key=lambda each: each.requests)
                chosen.in_trial = True
            chosen.outstanding += tokens
            chosen.requests += 1
            return chosen

    def _ask_replica(
        self,
        reading: ModelReading,
        replica: Replica,
        prompts: Sequence[LogitsPrompt],
        tokens: int,
        *,
        is_last: bool,
    ) -> list[Logits]:
        was_out, outstanding = reading.outage_of(replica), replica.outstanding
        try:
            if was_out is not None or replica.served is None:
                self._identify(reading, replica)
            started = time.perf_counter()
            seconds = MOST_SECONDS if is_last else _patience(replica, outstanding)
            found = self._read(reading, replica, prompts, seconds)
        except ServerFailure as failure:
            self._failed(reading, replica, failure)
            raise
        else:
            with self._lock:
                replica.measure(time.perf_counter() - started, outstanding)
                replica.tokens += tokens
            self._is_well(reading, replica)
            return found
        finally:
            with self._lock:
                replica.outstanding -= tokens
                if was_out is not None:
                    replica.in_trial = False
                    self._trial_ends.notify_all()

    def _read(
        self, reading: ModelReading, replica: Replica, prompts: Sequence[LogitsPrompt], seconds: float
    ) -> list[Logits]:
        served, probe = replica.served, reading.probe
        if served is None:  # another thread found it out of service meanwhile
            raise ServerFailure("does not respond")
        asked = probe.prompt(whole=served.dialect.reads_all)
        *found, known = replica.ask(served, [*prompts, asked], probe.heads, seconds)
        try:
            probe.require_same(asked.places, known)
        except WrongModel as error:
            raise WrongReplica(error.message.removeprefix("the server ").rstrip(".")) from None
        return found

    def _identify(self, reading: ModelReading, replica: Replica) -> None:
        """Raises ServerFailure unless it computes the model."""
        served = replica.identify(reading.probe)
        asked = reading.probe.prompt()
        (known,) = replica.ask(served, [asked], reading.probe.heads, MOST_SECONDS)
        try:
            reading.probe.require_same(asked.places, known)
        except WrongModel as error:
            raise WrongReplica(error.message.removeprefix("the server ").rstrip(".")) from None
        replica.served = served

    def _try(self, reading: ModelReading, replica: Replica, until: float = 0.0) -> str:
        """Why it is not well; empty where it is. until: of time.monotonic, the longest wait for another trial."""
        with self._lock:
            if not self._trial_ends.wait_for(
                lambda: not replica.in_trial, max(0.0, until - time.monotonic())
            ):
                return "is being tried"
            replica.in_trial = True
        try:
            self._identify(reading, replica)
        except ServerFailure as failure:
            self._failed(reading, replica, failure)
            return failure.reason
        else:
            with self._lock:
                if not replica.outstanding:
                    replica.forget_speed()
            self._is_well(reading, replica)
            return ""
        finally:
            with self._lock:
                replica.in_trial = False
                self._trial_ends.notify_all()

    def _reach(self, replica: Replica) -> None:
        try:
            replica.reach()
        except ServerFailure as failure:
            if replica.outage is None or replica.outage.reason != failure.reason:
                self._log_failure(replica, failure)
            replica.outage = Outage.after(replica.outage, failure)
        else:
            if replica.outage is not None:
                self._log_return(replica)
            replica.outage = None
        replica.checked_at = time.monotonic()

    def _is_new(self, reading: ModelReading, replica: Replica, failure: ServerFailure) -> bool:
        with self._lock:
            if not isinstance(failure, WrongReplica | RefusedRequest):
                return replica.outage is None or replica.outage.reason != failure.reason
            before, reading.logged[replica] = reading.logged.get(replica), failure.reason
            return before != failure.reason

    def _log_failure(self, replica: Replica, failure: ServerFailure) -> None:
        detail = f" ({failure.detail})" if failure.detail else ""
        logger.warning(
            "the replica %s of the server %s failed: it %s%s",
            replica.info.address,
            self.name,
            failure.reason,
            detail,
        )

    def _log_return(self, replica: Replica) -> None:
        logger.info("the replica %s of the server %s is back", replica.info.address, self.name)

    def _failed(self, reading: ModelReading, replica: Replica, failure: ServerFailure) -> None:
        if self._is_new(reading, replica, failure):  # the log has it once, not at every check
            self._log_failure(replica, failure)
        with self._lock:
            replica.errors += 1
            replica.checked_at = time.monotonic()
            if isinstance(failure, WrongReplica):
                reading.mismatches[replica] = Outage.after(reading.mismatches.get(replica), failure)
                return
            replica.served = None  # it is identified again: it may be started otherwise
            if not isinstance(failure, RefusedRequest):
                replica.outage = Outage.after(replica.outage, failure)

    def _is_well(self, reading: ModelReading, replica: Replica) -> None:
        with self._lock:
            was_failing = (reading.logged.pop(replica, None) or replica.outage) is not None
            replica.outage = None
            reading.mismatches.pop(replica, None)
            replica.checked_at = time.monotonic()
        if was_failing:
            self._log_return(replica)

    def _unavailable(self, reading: ModelReading, reason: str) -> Unavailable:
        with self._lock:
            there = [replica for replica in self._replicas.values() if not replica.info.is_draining]
            outages = [outage for each in there if (outage := reading.outage_of(each)) is not None]
        if not there:
            return Unavailable(
                f"The server {self.name} has no replica in service; without one there is no reward. Add a replica, or "
                "resume one that is drained."
            )
        reason = reason or (outages[0].reason if outages else "is being tried")
        retry_at = min((outage.retry_at for outage in outages), default=0.0)
        which = f"The server {self.name} {reason}" if len(there) == 1 else (
            f"None of the {len(there)} replicas of the server {self.name} computes the model: one {reason}"
        )  # fmt: skip
        return Unavailable(
            f"{which}. Without it there is no reward. Try again shortly.",
            retry_after=max(1, math.ceil(retry_at - time.monotonic())),
        )

    def _state(self, replica: Replica) -> ReplicaState:
        outages = [reading.mismatches.get(replica) for reading in self._readings]
        wrong = [outage for outage in outages if outage is not None]
        state, reason = "serving", ""
        if replica.info.is_draining:
            state = "draining"
        elif replica.outage is not None:
            state, reason = "out", replica.outage.reason
        elif wrong and len(wrong) == len(outages):
            state, reason = "other model", wrong[0].reason
        per_token = replica.seconds_per_token
        seconds = sorted(replica.seconds)
        served = replica.served
        return ReplicaState(
            pk=replica.info.pk,
            address=replica.info.address,
            state=state,
            reason=reason,
            model="" if served is None else served.id,
            dialect="" if served is None else served.dialect.name,
            outstanding=replica.outstanding,
            requests=replica.requests,
            errors=replica.errors,
            tokens=replica.tokens,
            tokens_per_second=None if not per_token else 1 / per_token,
            p50=_quantile(seconds, 0.5),
            p99=_quantile(seconds, 0.99),
        )


def _load(replica: Replica, tokens: int, fastest: float) -> float:
    own = replica.seconds_per_token
    factor = own / fastest if own is not None and fastest and own > _SLOW * fastest else 1.0
    return (replica.outstanding + tokens) * factor


def _patience(replica: Replica, outstanding: int) -> float:
    """Seconds after which a batch is asked of another replica."""
    per_token = replica.seconds_per_token
    if per_token is None:
        return MOST_SECONDS
    return min(max(_PATIENCE * per_token * outstanding, _LEAST_SECONDS), MOST_SECONDS)


def _quantile(ascending: Sequence[float], share: float) -> float | None:
    return ascending[min(int(share * len(ascending)), len(ascending) - 1)] if ascending else None
