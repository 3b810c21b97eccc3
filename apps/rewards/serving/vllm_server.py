"""vLLM servers that compute the decoders of endpoints: their addresses and keys are the operator's.

Requests go to `/pooling`, for the task token_classify, with token ids and without an activation: the outputs of the
classifier's heads after every token.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

import msgspec
from django.conf import settings

from apps.core.errors import DomainError
from apps.core.http import outgoing
from apps.core.storage import artifacts
from workers.errors import RewardError, Unavailable

if TYPE_CHECKING:
    from workers.engine import Scorer

T = TypeVar("T")
_LIMITS = outgoing.CallLimits(seconds=60.0, body=32 * 2**20)  # numbers for every token of a batch


class _PoolingData(msgspec.Struct, frozen=True):
    index: int
    data: list[list[float]]


class _PoolingReply(msgspec.Struct, frozen=True):
    data: list[_PoolingData]


class _ServedModel(msgspec.Struct, frozen=True):
    id: str
    max_model_len: int | None = None


class _ModelsReply(msgspec.Struct, frozen=True):
    data: list[_ServedModel]


class VllmServers:
    """Those of the installation, each with its connections."""

    def __init__(self) -> None:
        self._servers: dict[str, VllmServer] = {}

    def __call__(self, artifact: str, name: str) -> "Scorer":
        """The model of an artifact as the server of that name computes it. Raises RewardError."""
        from workers.models import load_remote  # torch, which importing this module should not cost

        address = settings.VLLM_SERVERS.get(name)
        if address is None:
            raise RewardError(unknown_server_message(name))
        server = self._servers.get(name) or self._servers.setdefault(name, VllmServer(name, address))
        return load_remote(artifacts.stage(artifact), server.reading)

    def close(self) -> None:
        for server in self._servers.values():
            server.close()


def unknown_server_message(name: str) -> str:
    known = ", ".join(settings.VLLM_SERVERS) or "none"
    return f"there is no vLLM server {name!r}; TOUCHSTONE_VLLM_SERVERS names {known}."


class VllmServer:
    """Its methods may be called from any thread. They raise Unavailable without a valid reply."""

    def __init__(self, name: str, address: str) -> None:
        self.name = name
        url = urlsplit(address)
        host = url.netloc.rpartition("@")[2]
        self._base = f"{url.scheme}://{host}{url.path}".rstrip("/")
        self._headers = {"Content-Type": "application/json"}
        if url.password:
            self._headers["Authorization"] = f"Bearer {url.password}"
        self._http = outgoing.Client(guarded=False, keep=True)
        self._model = ""

    def reading(self, tokens: int) -> Callable[[Sequence[Sequence[int]]], list[list[list[float]]]]:
        """The function that computes items of up to `tokens` tokens. Raises RewardError where it reads less."""
        served = self._request("GET", "/v1/models", None, _ModelsReply).data
        if not served:
            raise Unavailable(f"the vLLM server {self.name} serves no model.")
        self._model, longest = served[0].id, served[0].max_model_len
        if longest is not None and longest < tokens:
            raise RewardError(
                f"the vLLM server {self.name} reads {longest} tokens of an item, the model was trained to read "
                f"{tokens}; start it with --max-model-len {tokens}."
            )
        return self.ask

    def ask(self, batch: Sequence[Sequence[int]]) -> list[list[list[float]]]:
        """By item, token and head."""
        body = {
            "model": self._model,
            "input": [list(ids) for ids in batch],
            "task": "token_classify",
            "use_activation": False,
            "encoding_format": "float",
        }
        reply = self._request("POST", "/pooling", body, _PoolingReply)
        by_index = {row.index: row.data for row in reply.data}
        if set(by_index) != set(range(len(batch))):
            raise Unavailable(f"the vLLM server {self.name} answered {len(by_index)} of {len(batch)} items.")
        return [by_index[index] for index in range(len(batch))]

    def close(self) -> None:
        self._http.close()

    def _request(self, method: str, path: str, body: object, kind: type[T]) -> T:
        sent = b"" if body is None else msgspec.json.encode(body)
        try:
            reply = self._http.request(
                method, self._base + path, body=sent, headers=self._headers, limits=_LIMITS
            )
        except DomainError as error:
            raise Unavailable(
                f"The vLLM server {self.name} does not respond: {error.message} Without it there is no reward. Try "
                "again shortly."
            ) from error
        if reply.status == 429 or reply.status >= 500:
            raise Unavailable(
                f"The vLLM server {self.name} answers {reply.status}; without it there is no reward. Try again shortly."
            )
        if reply.status != 200:
            message = reply.body[:300].decode(errors="replace")
            raise Unavailable(f"the vLLM server {self.name} refuses: {reply.status} {message}")
        try:
            return msgspec.json.decode(reply.body, type=kind)
        except (ValueError, RecursionError) as error:
            raise Unavailable(f"the vLLM server {self.name} does not answer as vLLM does: {error}") from error
