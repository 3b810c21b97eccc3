"""What is loaded for each endpoint. A new revision is loaded while the old one serves, warmed up, and swapped in.

All of this runs on the event loop; only loading itself happens in a thread. A revision that cannot be loaded leaves
the old one serving, with the reason; loading is tried again after a while, for a store that was out of reach.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import msgspec

from apps.core.errors import DomainError
from apps.core.storage.model_folders import tokenizer_folder
from apps.rewards.servers import ServerKey
from apps.rewards.serving.problems import Problem
from apps.rewards.serving.registry import EndpointInfo, EndpointKey, ReleaseInfo, RevisionInfo
from workers.engine import Ask, Batcher, Scorer, ServedModel, Verify, Version
from workers.engine.judge_components import no_judge
from workers.engine.versions import no_verifier
from workers.errors import RewardError
from workers.schema import ScoreInput
from workers.schema.chat_text.formats import named_format
from workers.schema.endpoints import EndpointSpec, parse_spec

logger = logging.getLogger(__name__)

RETRY_SECONDS = 30.0
WARM_UP_ITEMS = (
    16  # scored lately, that a new revision scores before it answers: one at a time, between other requests
)
WARM_UP_TOKENS = 2048  # of such an item, at most
SERVER_REQUESTS = 4  # at the same time, to a replica of a server that computes models
# An artifact's name and its project's to the model and its cache.
Load = Callable[[str, str], tuple[Scorer, Any]]
# Keys of judges by name, and their project's name, to the function that asks them.
AskFor = Callable[[Mapping[str, int], str], Ask]
# A project's name to the function that asks the verifiers of its endpoints.
VerifyFor = Callable[[str], Verify]


def no_verifiers(project: str) -> Verify:
    return no_verifier


def no_judges(judges: Mapping[str, int], project: str) -> Ask:
    return no_judge


def _with_template_folder(spec: EndpointSpec) -> EndpointSpec:
    """The folder in place of its name, where a policy's chat template is that of a folder."""
    name = spec.policy_template
    if name is None or named_format(name) is not None:
        return spec
    return msgspec.structs.replace(spec, policy_template=str(tokenizer_folder(name)))


class Servers(Protocol):
    """Those that compute models. key: of a project's server, or of the operator's of that name; raises RewardError.

    A call gives the model of an artifact as the project's server of that name computes it.
    """

    def __call__(self, artifact: str, project: str, name: str, /) -> Scorer: ...
    def key(self, project: str, name: str) -> ServerKey: ...
    def replica_count(self, key: ServerKey) -> int: ...


class NoServers:
    def __call__(self, artifact: str, project: str, name: str) -> Scorer:
        raise RewardError(f"the server {name} cannot be called from this process.")

    def key(self, project: str, name: str) -> ServerKey:
        return "", name

    def replica_count(self, key: ServerKey) -> int:
        return 0


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a revision is not served."""

    number: int
    detail: str
    retry_at: float


@dataclass(eq=False, slots=True)
class Slot:
    """A place for a loaded revision of an endpoint. target: the revision it should hold. version: the one it holds."""

    target: RevisionInfo | None = None
    version: Version | None = None
    failure: Failure | None = None
    loading: "asyncio.Task[None] | None" = None

    @property
    def has_result(self) -> bool:
        return self.target is None or self.version is not None or self.failure is not None

    @property
    def is_current(self) -> bool:
        return (
            self.target is not None and self.version is not None and self.version.number == self.target.number
        )

    @property
    def missing(self) -> RevisionInfo | None:
        """The revision to load now, if any."""
        if self.target is None or self.loading is not None:
            return None
        if self.is_current:
            return None
        if self.failure is not None and self.failure.number == self.target.number:
            return self.target if time.monotonic() >= self.failure.retry_at else None
        return self.target

    def set_target(self, revision: RevisionInfo | None) -> None:
        """A failure is kept while its revision is the target."""
        self.target = revision
        number = None if revision is None else revision.number
        if self.failure is not None and self.failure.number != number:
            self.failure = None

    def is_for(self, version: Version) -> bool:
        return self.target is not None and self.target.number == version.number

    def cancel_loading(self) -> None:
        if self.loading is not None:
            self.loading.cancel()
            self.loading = None

    def clear(self) -> None:
        self.cancel_loading()
        self.set_target(None)
        if self.version is not None:
            self.version.retire()
            self.version = None


@dataclass(frozen=True, slots=True)
class Target:
    """What answers one request. release, candidate: of an open release whose revision is loaded, else None."""

    deployment: "Deployment"
    active: Version
    release: ReleaseInfo | None = None
    candidate: Version | None = None


@dataclass(eq=False, slots=True)
class Deployment:
    """An endpoint as it is now. active: the revision that answers. candidate: that of an open release. standby: one
    that is kept warm. recent_items: what was scored lately."""

    info: EndpointInfo
    active: Slot = field(default_factory=Slot)
    candidate: Slot = field(default_factory=Slot)
    standby: Slot = field(default_factory=Slot)
    recent_items: deque[ScoreInput] = field(default_factory=lambda: deque(maxlen=WARM_UP_ITEMS))

    @property
    def version(self) -> Version | None:
        return self.active.version

    @property
    def failure(self) -> Failure | None:
        return self.active.failure

    @property
    def loaded_release(self) -> tuple[ReleaseInfo, Version] | None:
        """The open release and its loaded version, where both are there."""
        release, version = self.info.release, self.candidate.version
        if release is None or version is None or version.number != release.revision.number:
            return None
        return release, version

    @contextmanager
    def lease(self) -> Iterator[Target]:
        """What answers now; it stays loaded within the block. Raises Problem 503 where nothing does."""
        with ExitStack() as leases:
            active = leases.enter_context(self._serving_version().lease())
            if (found := self.loaded_release) is None:
                yield Target(self, active)
            else:
                release, candidate = found
                yield Target(self, active, release, leases.enter_context(candidate.lease()))

    @property
    def slots(self) -> tuple[Slot, Slot, Slot]:
        return self.active, self.candidate, self.standby

    def follow(self, info: EndpointInfo) -> None:
        """Versions that are loaded move between the slots: promoted, rolled back, or kept warm. The active one answers
        until what follows it is loaded."""
        self.info = info
        candidate = None if info.release is None else info.release.revision
        taken = {revision.number for revision in (info.revision, candidate) if revision is not None}
        standby = None if info.standby is None or info.standby.number in taken else info.standby
        loaded = {slot.version.number: slot.version for slot in self.slots if slot.version is not None}
        answering = self.active.version
        for slot, target in zip(self.slots, (info.revision, candidate, standby), strict=True):
            slot.set_target(target)
            slot.version = None if target is None else loaded.pop(target.number, None)
            if slot is self.active and slot.version is None and target is not None and answering is not None:
                slot.version = loaded.pop(answering.number)
        for version in loaded.values():
            version.retire()

    def remember(self, items: Sequence[ScoreInput], tokens: Sequence[int]) -> None:
        """Keep the first short one of a request, for warming up what comes next."""
        short = (item for item, count in zip(items, tokens, strict=True) if count <= WARM_UP_TOKENS)
        if (item := next(short, None)) is not None:
            self.recent_items.append(item)

    def install(self, version: Version) -> None:
        """Put it in the slot that it is for now, which need not be the one that it was loaded for. What was there is
        retired, unless it is to stand by."""
        slot = next((each for each in self.slots if each.is_for(version) and not each.is_current), None)
        if slot is None:  # it is no longer needed
            version.retire()
            return
        slot.cancel_loading()  # the same revision, next in the queue
        old, slot.version, slot.failure = slot.version, version, None
        if old is not None and self.standby.version is None and self.standby.is_for(old):
            self.standby.version = old
        elif old is not None:
            old.retire()

    @property
    def loadable(self) -> tuple[Slot, ...]:
        """The slots whose revisions are to be loaded; one that still answers moves to the standby slot later."""
        answering = self.active.version
        waits = answering is not None and self.standby.is_for(answering)
        return (self.active, self.candidate) if waits else self.slots

    def _serving_version(self) -> Version:
        info = self.info
        if info.switched_off:
            reason = f": {info.reason}" if info.reason else "."
            raise Problem(f"The endpoint {info.name} is switched off{reason}", status=503, switched_off=True)
        if self.version is not None:
            return self.version
        if info.revision is None:
            raise Problem(
                f"Nothing is deployed on {info.name} yet; deploy a model with `deploy MODEL {info.name}`.",
                status=503,
            )
        if self.failure is not None:
            raise Problem(
                f"{info.name}@{self.failure.number} cannot be served: {self.failure.detail}",
                status=503,
                headers={"Retry-After": f"{RETRY_SECONDS:.0f}"},  # when it is tried again
            )
        raise Problem(f"{info.name} is being loaded.", status=503, headers={"Retry-After": "2"})


_SharedKey = tuple[str, str | None]  # an artifact, and the server that computes it


@dataclass(eq=False, slots=True)
class _Shared:
    served: ServedModel
    users: set[Version] = field(default_factory=set)


class Deployments:
    def __init__(
        self,
        batcher: Batcher,
        load: Load,
        verify: VerifyFor = no_verifiers,
        servers: Servers | None = None,
        ask: AskFor = no_judges,
    ) -> None:
        self.by_key: dict[EndpointKey, Deployment] = {}
        self._batcher = batcher
        self._load = load
        self._verify = verify
        self._servers = servers or NoServers()
        self._ask = ask
        self._shared: dict[_SharedKey, _Shared] = {}
        self._server_batchers: dict[ServerKey, Batcher] = {}
        self._loading_lock = asyncio.Lock()
        self._loader = ThreadPoolExecutor(1, thread_name_prefix="touchstone-loader")

    @property
    def batchers(self) -> list[Batcher]:
        """Where items wait: for this process, and for each server that computes models."""
        return [self._batcher, *self._server_batchers.values()]

    @property
    def batchers_by_engine(self) -> Mapping[ServerKey, Batcher]:
        """By server; that of this process by two empty names."""
        return {("", ""): self._batcher, **self._server_batchers}

    def update(self, endpoints: Mapping[EndpointKey, EndpointInfo]) -> None:
        """Follow the registry: start loading what is new, retire what is gone."""
        for key in [key for key in self.by_key if key not in endpoints]:
            gone = self.by_key.pop(key)
            for slot in gone.slots:
                slot.clear()
        for key, info in endpoints.items():
            deployment = self.by_key.setdefault(key, Deployment(info))
            deployment.follow(info)
            for slot in deployment.loadable:
                self._start_loading(slot, deployment)
        for key, batcher in self._server_batchers.items():
            batcher.set_threads(self._server_threads(key))

    async def load_ephemeral(self, revision: RevisionInfo, project: str) -> Version:
        """A version of a spec that is not deployed. Raises RewardError or DomainError; retire it after use."""
        return await self._make_version(revision, project)

    def close(self) -> None:
        for deployment in self.by_key.values():
            for slot in deployment.slots:
                slot.cancel_loading()
        self._loader.shutdown(wait=False, cancel_futures=True)

    def _start_loading(self, slot: Slot, deployment: Deployment) -> None:
        if (revision := slot.missing) is not None:
            slot.loading = asyncio.create_task(self._load_and_swap(slot, revision, deployment))

    async def _load_and_swap(self, slot: Slot, revision: RevisionInfo, deployment: Deployment) -> None:
        started, info = time.perf_counter(), deployment.info
        try:
            version = await self._make_version(revision, info.project, deployment.recent_items)
        except Exception as error:  # whatever is wrong with a revision, the old one keeps serving
            expected = isinstance(error, DomainError | RewardError)
            detail = error.message if isinstance(error, DomainError | RewardError) else f"{error!r}"
            slot.loading = None
            failure = Failure(revision.number, detail, time.monotonic() + RETRY_SECONDS)
            for each in deployment.slots:
                if each.target is not None and each.target.number == revision.number:
                    each.failure = failure
            logger.exception(
                "%s@%s cannot be served: %s", info.full_name, revision.number, detail, exc_info=not expected
            )
            return
        seconds = time.perf_counter() - started
        logger.info("%s@%s is loaded, in %.1f s", info.full_name, revision.number, seconds)
        slot.loading = None
        deployment.install(version)
        for each in deployment.loadable:
            self._start_loading(each, deployment)  # another one may have come while this was loading

    async def _make_version(
        self, revision: RevisionInfo, project: str, recent: Sequence[ScoreInput] = ()
    ) -> Version:
        async with self._loading_lock:  # so that the next one reuses the models of this one
            loop = asyncio.get_running_loop()
            version = await loop.run_in_executor(
                self._loader, self._load_version, revision, project, list(recent)
            )
            for name, model in version.models.items():
                place = (revision.artifacts[name], version.spec.servers.get(name))
                self._shared.setdefault(place, _Shared(model)).users.add(version)
            return version

    def _load_version(
        self, revision: RevisionInfo, project: str, recent: Sequence[ScoreInput] = ()
    ) -> Version:
        """Loaded, asked for the probe where a server computes it, and warm: `recent` is scored before it answers."""
        spec = _with_template_folder(parse_spec(revision.spec))
        models = {name: self._served(name, spec.servers.get(name), revision, project) for name in spec.models}
        ask = self._ask(revision.judges, project)
        verify = self._verify(project)
        version = Version(revision.number, spec, models, self._batcher, self._let_go, verify, ask)
        version.warm_up()
        for item in recent:
            version.warm_up_with(item)
        return version

    def _served(self, name: str, server: str | None, revision: RevisionInfo, project: str) -> ServedModel:
        if name not in revision.artifacts:
            raise DomainError(f"The spec names the model {name}, which the revision does not hold.")
        artifact = revision.artifacts[name]
        shared = self._shared.get((artifact, server))
        if shared is not None:
            return shared.served
        if server is None:
            return ServedModel(name, *self._load(artifact, project))
        model = self._servers(artifact, project, server)
        key = self._servers.key(project, server)
        own = self._server_batchers.get(key)
        if own is None:
            own = self._server_batchers[key] = self._batcher.clone_limits(self._server_threads(key))
        return ServedModel(name, model, own_batcher=own)

    def _server_threads(self, key: ServerKey) -> int:
        return SERVER_REQUESTS * max(self._servers.replica_count(key), 1)

    def _let_go(self, version: Version) -> None:
        """The last request of a retired version is answered: drop the models that no other version serves."""
        for place, shared in list(self._shared.items()):
            shared.users.discard(version)
            if not shared.users:
                del self._shared[place]
                (shared.served.own_batcher or self._batcher).evict(shared.served)
        logger.info("version %s is drained and closed", version.number)
