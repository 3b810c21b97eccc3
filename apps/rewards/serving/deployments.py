"""What is loaded for each endpoint. A new revision is loaded beside the old one, warmed up, and swapped in.

All of this runs on the event loop; only loading itself happens in a thread. A revision that cannot be loaded leaves
the old one serving and says why; it is tried again after a while, for a store that was out of reach.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from apps.core.errors import DomainError
from apps.rewards.serving.directory import EndpointInfo, EndpointKey, ReleaseInfo, RevisionInfo
from workers.engine import Ask, Batcher, Scorer, ServedModel, Verify, Version
from workers.engine.judging import no_judge
from workers.engine.versions import no_verifier
from workers.errors import RewardError
from workers.schema.endpoints import parse_spec

logger = logging.getLogger(__name__)

RETRY_SECONDS = 30.0
AT_ONCE = 4  # requests to a server that computes a model
# An artifact's name and its project's to the model and its cache.
Load = Callable[[str, str], tuple[Scorer, Any]]
# An artifact's name and that of a server to the model that the server computes.
Connect = Callable[[str, str], Scorer]


# Keys of judges by name, and their project's name, to who asks them.
AskOf = Callable[[Mapping[str, int], str], Ask]


# A project's name to who asks the verifiers of its endpoints.
VerifyOf = Callable[[str], Verify]


def no_verifiers(project: str) -> Verify:
    return no_verifier


def nobody(judges: Mapping[str, int], project: str) -> Ask:
    return no_judge


def no_server(artifact: str, server: str) -> Scorer:
    raise RewardError(f"the server {server} cannot be asked from here: this engine calls nobody.")


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a revision is not served."""

    number: int
    detail: str
    retry_at: float


@dataclass(eq=False, slots=True)
class Slot:
    """Where one revision of an endpoint is loaded. version: what is there, None before the first was loaded."""

    wanted: RevisionInfo | None = None
    version: Version | None = None
    failure: Failure | None = None
    loading: "asyncio.Task[None] | None" = None

    @property
    def was_tried(self) -> bool:
        return self.wanted is None or self.version is not None or self.failure is not None

    @property
    def has_wanted(self) -> bool:
        return (
            self.wanted is not None and self.version is not None and self.version.number == self.wanted.number
        )

    @property
    def missing(self) -> RevisionInfo | None:
        """The revision to load now, if any."""
        if self.wanted is None or self.loading is not None:
            return None
        if self.has_wanted:
            return None
        if self.failure is not None and self.failure.number == self.wanted.number:
            return self.wanted if time.monotonic() >= self.failure.retry_at else None
        return self.wanted

    def want(self, revision: RevisionInfo | None) -> None:
        """A failure is of interest while its revision is the wanted one."""
        self.wanted = revision
        number = None if revision is None else revision.number
        if self.failure is not None and self.failure.number != number:
            self.failure = None

    def put(self, version: Version | None) -> None:
        old, self.version = self.version, version
        if old is not None:
            old.retire()

    def empty(self) -> None:
        if self.loading is not None:
            self.loading.cancel()
            self.loading = None
        self.want(None)
        self.put(None)


@dataclass(eq=False, slots=True)
class Deployment:
    """An endpoint as it is now. active: what answers. candidate: of an open release."""

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

    def follow(self, info: EndpointInfo) -> None:
        self.info = info
        self.active.want(info.revision)
        tried = self.candidate.version
        if tried is not None and info.revision is not None and tried.number == info.revision.number:
            self.candidate.version = None  # promoted: it moves as it is
            self.active.put(tried)
        if info.release is None:
            self.candidate.empty()
        else:
            self.candidate.want(info.release.revision)


_Place = tuple[str, str | None]  # an artifact, and the server that computes it


@dataclass(eq=False, slots=True)
class _Shared:
    served: ServedModel
    users: set[Version] = field(default_factory=set)


class Deployments:
    def __init__(
        self,
        batcher: Batcher,
        load: Load,
        verify: VerifyOf = no_verifiers,
        connect: Connect = no_server,
        ask: AskOf = nobody,
    ) -> None:
        self.by_key: dict[EndpointKey, Deployment] = {}
        self._batcher = batcher
        self._load = load
        self._verify = verify
        self._connect = connect
        self._ask = ask
        self._shared: dict[_Place, _Shared] = {}
        self._lanes: dict[str, Batcher] = {}  # by server
        self._one_at_a_time = asyncio.Lock()
        self._loader = ThreadPoolExecutor(1, thread_name_prefix="touchstone-loader")

    @property
    def batchers(self) -> list[Batcher]:
        """Where items wait: for this process, and for each server that computes models."""
        return [self._batcher, *self._lanes.values()]

    def update(self, endpoints: Mapping[EndpointKey, EndpointInfo]) -> None:
        """Follow the directory: start loading what is new, retire what is gone."""
        for key in [key for key in self.by_key if key not in endpoints]:
            gone = self.by_key.pop(key)
            gone.active.empty()
            gone.candidate.empty()
        for key, info in endpoints.items():
            deployment = self.by_key.setdefault(key, Deployment(info))
            deployment.follow(info)
            self._fill(deployment.active, info)
            self._fill(deployment.candidate, info)

    async def undeployed(self, revision: RevisionInfo, project: str) -> Version:
        """A version of a spec that is not deployed. Raises RewardError or DomainError; retire it when it is used."""
        return await self._make_version(revision, project)

    def close(self) -> None:
        for deployment in self.by_key.values():
            for slot in (deployment.active, deployment.candidate):
                if slot.loading is not None:
                    slot.loading.cancel()
        self._loader.shutdown(wait=False, cancel_futures=True)

    def _fill(self, slot: Slot, info: EndpointInfo) -> None:
        if (revision := slot.missing) is not None:
            slot.loading = asyncio.create_task(self._bring_up(slot, revision, info))

    async def _bring_up(self, slot: Slot, revision: RevisionInfo, info: EndpointInfo) -> None:
        started = time.perf_counter()
        try:
            version = await self._make_version(revision, info.project)
        except Exception as error:  # whatever is wrong with a revision, the old one goes on
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
        if slot.wanted is None or slot.has_wanted:  # nobody waits for it any more
            version.retire()
            return
        slot.put(version)
        self._fill(slot, info)  # another one may have come while this was loading

    async def _make_version(self, revision: RevisionInfo, project: str) -> Version:
        async with self._one_at_a_time:  # so that the next one finds the models of this one
            loop = asyncio.get_running_loop()
            version = await loop.run_in_executor(self._loader, self._load_version, revision, project)
            for name, model in version.models.items():
                place = (revision.artifacts[name], version.spec.servers.get(name))
                self._shared.setdefault(place, _Shared(model)).users.add(version)
            return version

    def _load_version(self, revision: RevisionInfo, project: str) -> Version:
        spec = parse_spec(revision.spec)
        models = {name: self._served(name, spec.servers.get(name), revision, project) for name in spec.models}
        ask = self._ask(revision.judges, project)
        verify = self._verify(project)
        version = Version(revision.number, spec, models, self._batcher, self._release, verify, ask)
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
        lane = self._lanes.get(server) or self._lanes.setdefault(server, self._batcher.lane(AT_ONCE))
        return ServedModel(name, model, lane=lane)

    def _release(self, version: Version) -> None:
        """The last request of a retired version is answered: let go of models nobody else serves."""
        for place, shared in list(self._shared.items()):
            shared.users.discard(version)
            if not shared.users:
                del self._shared[place]
                (shared.served.lane or self._batcher).forget(shared.served)
        logger.info("version %s is drained and closed", version.number)
