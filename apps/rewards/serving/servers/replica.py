"""One server that computes decoders: its connection, its load, and how fast it was."""

import time
from collections import deque
from dataclasses import dataclass, field
from statistics import median
from typing import Any
from urllib.parse import urlsplit

import msgspec

from apps.core.errors import DomainError
from apps.core.http import outgoing
from apps.rewards.serving.servers.dialects import Dialect, recognised_dialect
from apps.rewards.serving.servers.errors import RefusedRequest, ServerFailure, WrongReplica
from workers.schema.remote_models import Logits, LogitsPrompt, ModelProbe

MOST_BYTES = 32 * 2**20  # logits of every token of a batch
MOST_SECONDS = 60.0
PROBE_SECONDS = 5.0  # of a call that only finds out whether the server is well
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0  # seconds until one that failed is tried again
_REFUSALS = (400, 404, 405, 422)
_MEASURED, _ENOUGH = 15, 5  # batches that tell its speed, at most and at least
_RECENT = 512  # batches, of which latencies are shown


class _ModelCard(msgspec.Struct, frozen=True):
    id: str
    owned_by: str = ""
    max_model_len: int | None = None


class _ModelList(msgspec.Struct, frozen=True):
    data: list[_ModelCard]


@dataclass(frozen=True, slots=True)
class ReplicaInfo:
    """pk: of the row, None for a server of the settings. address: without a password. guarded: whether it was typed in
    by someone who may not call addresses of the inner network."""

    address: str
    key: str = field(default="", repr=False)
    is_draining: bool = False
    guarded: bool = True
    pk: int | None = None

    @classmethod
    def of_operator(cls, address: str) -> "ReplicaInfo":
        """Of `http://:KEY@host:port`."""
        url = urlsplit(address)
        host = url.netloc.rpartition("@")[2]
        base = f"{url.scheme}://{host}{url.path}".rstrip("/")
        return cls(base, url.password or "", guarded=False)


@dataclass(frozen=True, slots=True)
class ReplicaModel:
    """What a server said of itself. longest: tokens of an item, None where it does not say."""

    id: str
    dialect: Dialect
    longest: int | None


@dataclass(frozen=True, slots=True)
class Outage:
    """Why a replica is not asked, until when, and the pause after that if it fails again."""

    reason: str
    since: float
    retry_at: float
    next_pause: float

    @classmethod
    def after(cls, before: "Outage | None", failure: ServerFailure) -> "Outage":
        now = time.monotonic()
        pause = FIRST_PAUSE if before is None else before.next_pause
        if failure.retry_after is not None:
            pause = min(max(failure.retry_after, FIRST_PAUSE), LONGEST_PAUSE)
        since = now if before is None else before.since
        return cls(failure.reason, since, now + pause, min(2 * pause, LONGEST_PAUSE))


class Replica:
    """Calls may be made from any thread; counts are changed by its pool, under the pool's lock.

    outstanding: tokens that it was sent and has not answered.
    """

    def __init__(self, info: ReplicaInfo) -> None:
        self.info = info
        self.served: ReplicaModel | None = None
        self.outage: Outage | None = None
        self.in_trial = False
        self.outstanding = 0
        self.requests = 0
        self.errors = 0
        self.tokens = 0
        self.checked_at = 0.0
        self.seconds: deque[float] = deque(maxlen=_RECENT)
        self._speeds: deque[float] = deque(maxlen=_MEASURED)
        self._http = outgoing.Client(guarded=info.guarded, keep=True, logs=False)

    @property
    def seconds_per_token(self) -> float | None:
        """The median of recent batches; None before there are some."""
        return median(self._speeds) if len(self._speeds) >= _ENOUGH else None

    def measure(self, seconds: float, tokens: int) -> None:
        """tokens: that were outstanding when the batch was sent, its own included."""
        self._speeds.append(seconds / max(tokens, 1))
        self.seconds.append(seconds)

    def forget_speed(self) -> None:
        """One that was slow and is idle gets another chance."""
        self._speeds.clear()

    def identify(self, probe: ModelProbe) -> ReplicaModel:
        """What it serves, asked again. Raises ServerFailure, also where it computes another model."""
        post = self._poster(PROBE_SECONDS)
        cards: _ModelList = self._call("GET", "/v1/models", None, _ModelList, PROBE_SECONDS)
        if not cards.data:
            raise ServerFailure("serves no model")
        card = cards.data[0]
        if card.max_model_len is not None and card.max_model_len < probe.max_tokens:
            raise WrongReplica(
                f"reads {card.max_model_len} tokens of an item, the model was trained to read {probe.max_tokens}; "
                f"start vLLM with --max-model-len {probe.max_tokens}, SGLang with --context-length {probe.max_tokens}"
            )
        dialect = recognised_dialect(card.owned_by, post, card.id, probe.prompt(), probe.heads)
        return ReplicaModel(card.id, dialect, card.max_model_len)

    def reach(self) -> None:
        """Whether it answers at all. Raises ServerFailure."""
        self._call("GET", "/v1/models", None, _ModelList, PROBE_SECONDS)

    def ask(
        self, served: ReplicaModel, prompts: list[LogitsPrompt], heads: int, seconds: float
    ) -> list[Logits]:
        """Raises ServerFailure, RefusedRequest."""
        return served.dialect.ask(self._poster(seconds), served.id, prompts, heads)

    def close(self) -> None:
        self._http.close()

    def _poster(self, seconds: float) -> Any:
        def post(path: str, body: object, kind: type[Any]) -> Any:
            return self._call("POST", path, body, kind, seconds)

        return post

    def _call(self, method: str, path: str, body: object, kind: Any, seconds: float) -> Any:
        headers = {"Content-Type": "application/json"}
        if self.info.key:
            headers["Authorization"] = f"Bearer {self.info.key}"
        sent = b"" if body is None else msgspec.json.encode(body)
        limits = outgoing.CallLimits(seconds=seconds, body=MOST_BYTES)
        try:
            reply = self._http.request(
                method, self.info.address + path, body=sent, headers=headers, limits=limits
            )
        except outgoing.NoReply as error:
            raise ServerFailure("does not respond", detail=error.detail or error.message) from error
        except DomainError as error:
            raise ServerFailure("does not respond", detail=error.message) from error
        if reply.status != 200:
            raise _refusal(reply)
        try:
            return msgspec.json.decode(reply.body, type=kind)
        except (ValueError, RecursionError) as error:
            raise ServerFailure(f"does not answer as vLLM or SGLang does: {error}") from error


def _refusal(reply: outgoing.Reply) -> ServerFailure:
    if reply.status in _REFUSALS:
        message = " ".join(reply.body[:300].decode(errors="replace").split())
        return RefusedRequest(f"refuses: {reply.status} {message}")
    asked = reply.headers.get("Retry-After", "")
    pause = float(asked) if asked.isdecimal() and len(asked) < 6 else None
    return ServerFailure(f"answers {reply.status}", retry_after=pause, detail=repr(reply.body[:300]))
