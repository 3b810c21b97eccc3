"""What is loaded for each endpoint. A new revision is loaded while the old one serves, warmed up, and swapped in.

All of this runs on the event loop; only loading itself happens in a thread. A revision that cannot be loaded leaves
the old one serving, with the reason; loading is tried again after a while, for a store that was out of reach.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec

from apps.core.errors import DomainError
from apps.core.storage.model_folders import tokenizer_folder
from apps.rewards.serving.problems import Problem
from apps.rewards.serving.registry import EndpointInfo, EndpointKey, ReleaseInfo, RevisionInfo
from workers.engine import Ask, Batcher, Scorer, ServedModel, Verify, Version
from workers.engine.judge_components import no_judge
from workers.engine.versions import no_verifier
from workers.errors import RewardError
from workers.schema.chat_text.formats import named_format
from workers.schema.endpoints import EndpointSpec, parse_spec

logger = logging.getLogger(__name__)

RETRY_SECONDS = 30.0
SERVER_REQUESTS = 4  # at the same time, to a server that computes a model
# An artifact's name and its project's to the model and its cache.
Load = Callable[[str, str], tuple[Scorer, Any]]
# An artifact's name and that of a server to the model that the server computes.
Connect = Callable[[str, str], Scorer]
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


def no_server(artifact: str, server: str) -> Scorer:
    raise RewardError(f"the server {server} cannot be called from this process.")


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

    def swap(self, version: Version | None) -> None:
        old, self.version = self.version, version
        if old is not None:
            old.retire()

    def clear(self) -> None:
        if self.loading is not None:
            self.loading.cancel()
            self.loading = None
        self.set_target(None)
        self.swap(None)


@dataclass(frozen=True, slots=True)
class Target:
    """What answers one request. release, candidate: of an open release whose revision is loaded, else None."""

    deployment: "Deployment"
    active: Version
    release: ReleaseInfo | None = None
    candidate: Version | None = None


@dataclass(eq=False, slots=True)
class Deployment:
    """An endpoint as it is now. active: the revision that answers. candidate: that of an open release."""

    info: EndpointInfo
    active: Slot = field(default_factory=Slot)
    candidate: Slot = field(default_factory=Slot)

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

    def follow(self, info: EndpointInfo) -> None:
        self.info = info
        self.active.set_target(info.revision)
        candidate = self.candidate.version
        if candidate is not None and info.revision is not None and candidate.number == info.revision.number:
            self.candidate.version = None  # promoted: the loaded version moves
            self.active.swap(candidate)
        if info.release is None:
            self.candidate.clear()
        else:
            self.candidate.set_target(info.release.revision)

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
        connect: Connect = no_server,
        ask: AskFor = no_judges,
    ) -> None:
        self.by_key: dict[EndpointKey, Deployment] = {}
        self._batcher = batcher
        self._load = load
        self._verify = verify
        self._connect = connect
        self._ask = ask
        self._shared: dict[_SharedKey, _Shared] = {}
        self._server_batchers: dict[str, Batcher] = {}  # by server
        self._loading_lock = asyncio.Lock()
        self._loader = ThreadPoolExecutor(1, thread_name_prefix="touchstone-loader")

    @property
    def batchers(self) -> list[Batcher]:
        """Where items wait: for this process, and for each server that computes models."""
        return [self._batcher, *self._server_batchers.values()]

    def update(self, endpoints: Mapping[EndpointKey, EndpointInfo]) -> None:
        """Follow the registry: start loading what is new, retire what is gone."""
        for key in [key for key in self.by_key if key not in endpoints]:
            gone = self.by_key.pop(key)
            gone.active.clear()
            gone.candidate.clear()
        for key, info in endpoints.items():
            deployment = self.by_key.setdefault(key, Deployment(info))
            deployment.follow(info)
            self._start_loading(deployment.active, info)
            self._start_loading(deployment.candidate, info)

    async def load_ephemeral(self, revision: RevisionInfo, project: str) -> Version:
        """A version of a spec that is not deployed. Raises RewardError or DomainError; retire it after use."""
        return await self._make_version(revision, project)

    def close(self) -> None:
        for deployment in self.by_key.values():
            for slot in (deployment.active, deployment.candidate):
                if slot.loading is not None:
                    slot.loading.cancel()
        self._loader.shutdown(wait=False, cancel_futures=True)

    def _start_loading(self, slot: Slot, info: EndpointInfo) -> None:
        if (revision := slot.missing) is not None:
            slot.loading = asyncio.create_task(self._load_and_swap(slot, revision, info))

    async def _load_and_swap(self, slot: Slot, revision: RevisionInfo, info: EndpointInfo) -> None:
        started = time.perf_counter()
        try:
            version = await self._make_version(revision, info.project)
        except Exception as error:  # whatever is wrong with a revision, the old one keeps serving
            expected = isinstance(error, DomainError | RewardError)
            detail = error.message if isinstance(error, DomainError | RewardError) else f"{error!r}"
            slot.failure = Failure(revision.number, detail, time.monotonic() + RETRY_SECONDS)
            logger.exception(
                "%s@%s cannot be served: %s", info.full_name, revision.number, detail, exc_info=not expected
            )
            slot.loading = None
            return
        seconds = time.perf_counter() - started
        logger.info("%s@%s is loaded, in %.1f s", info.full_name, revision.number, seconds)
        slot.loading, slot.failure = None, None
        if slot.target is None or slot.is_current:  # it is no longer needed
            version.retire()
            return
        slot.swap(version)
        self._start_loading(slot, info)  # another one may have come while this was loading

    async def _make_version(self, revision: RevisionInfo, project: str) -> Version:
        async with self._loading_lock:  # so that the next one reuses the models of this one
            loop = asyncio.get_running_loop()
            version = await loop.run_in_executor(self._loader, self._load_version, revision, project)
            for name, model in version.models.items():
                place = (revision.artifacts[name], version.spec.servers.get(name))
                self._shared.setdefault(place, _Shared(model)).users.add(version)
            return version

    def _load_version(self, revision: RevisionInfo, project: str) -> Version:
        spec = _with_template_folder(parse_spec(revision.spec))
        models = {name: self._served(name, spec.servers.get(name), revision, project) for name in spec.models}
        ask = self._ask(revision.judges, project)
        verify = self._verify(project)
        version = Version(revision.number, spec, models, self._batcher, self._let_go, verify, ask)
        version.warm_up()
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
        model = self._connect(artifact, server)
        own = self._server_batchers.get(server)
        if own is None:
            own = self._server_batchers[server] = self._batcher.clone_limits(SERVER_REQUESTS)
        return ServedModel(name, model, own_batcher=own)

    def _let_go(self, version: Version) -> None:
        """The last request of a retired version is answered: drop the models that no other version serves."""
        for place, shared in list(self._shared.items()):
            shared.users.discard(version)
            if not shared.users:
                del self._shared[place]
                (shared.served.own_batcher or self._batcher).evict(shared.served)
        logger.info("version %s is drained and closed", version.number)
