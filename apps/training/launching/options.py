"""What a run asks of the launcher that it names."""

from dataclasses import asdict, dataclass
from typing import Any

from django.conf import settings

from apps.core.errors import DomainError
from apps.machines.launcher import NAME as MACHINE
from apps.training.models import LOCAL
from workers.launch.job import JobResources
from workers.schema.recipe import needs_one_process

MAX_HOSTS, MAX_GPUS = 256, 16


@dataclass(frozen=True, slots=True)
class LaunchOptions:
    """gpus: on each host; None: what the installation sets."""

    hosts: int = 1
    gpus: int | None = None

    @classmethod
    def read(cls, stored: dict[str, Any]) -> "LaunchOptions":
        return cls(**{key: stored[key] for key in ("hosts", "gpus") if key in stored})

    def values(self) -> dict[str, Any]:
        return {key: value for key, value in asdict(self).items() if value is not None}

    def resources(self, recipe: dict[str, Any]) -> JobResources:
        gpus = settings.CLUSTER_GPUS if self.gpus is None else self.gpus
        is_alone = needs_one_process(recipe)
        if is_alone:
            gpus = min(gpus, 1)
        return JobResources(
            hosts=self.hosts,
            processes=1 if is_alone else gpus or settings.TRAINING_PROCESSES,
            gpus=gpus,
            cpus=settings.CLUSTER_CPUS,
            memory_gb=settings.CLUSTER_MEMORY_GB,
            seconds=settings.CLUSTER_HOURS * 3600,
        )


def check_launch_options(
    launcher: str, recipe: dict[str, Any], *, hosts: int | None, gpus: int | None
) -> LaunchOptions:
    """Raises DomainError for what the launcher or the recipe cannot have."""
    if launcher == LOCAL:
        if hosts not in (None, 1) or gpus is not None:
            pointer = "/hosts" if hosts not in (None, 1) else "/gpus"
            raise DomainError(
                "hosts and gpus are for clusters; a run on this machine takes what TOUCHSTONE_TRAINING_PROCESSES and "
                "TOUCHSTONE_TRAINING_DEVICE of its worker give it.",
                pointer=pointer,
            )
        return LaunchOptions()
    hosts = 1 if hosts is None else hosts
    if launcher == MACHINE and hosts != 1:
        raise DomainError(
            "A run trains on one joined machine; leave hosts out, or take a cluster.", pointer="/hosts"
        )
    if not 1 <= hosts <= MAX_HOSTS:
        raise DomainError(f"hosts must be between 1 and {MAX_HOSTS}, not {hosts}.", pointer="/hosts")
    if gpus is not None and not 0 <= gpus <= MAX_GPUS:
        raise DomainError(
            f"gpus (of each host) must be between 0 and {MAX_GPUS}, not {gpus}.", pointer="/gpus"
        )
    if needs_one_process(recipe) and (hosts > 1 or (gpus or 0) > 1):
        raise DomainError(
            "This recipe is trained by one process (a search, a linear or hybrid model, or a generative one): take one "
            "host and at most one GPU, or another recipe.",
            pointer="/hosts" if hosts > 1 else "/gpus",
        )
    if hosts > 1 and recipe.get("sharding") == "always":
        raise DomainError(
            "sharding = 'always' writes a part of each checkpoint on every host, and hosts without a common disk "
            "cannot resume from that: take one host, or sharding 'auto' or 'never'.",
            pointer="/hosts",
        )
    return LaunchOptions(hosts, gpus)
