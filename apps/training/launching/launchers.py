"""The launchers of this installation: `local`, and those that are set up."""

import subprocess
from collections.abc import Callable
from dataclasses import dataclass

from django.conf import settings

from apps.accounts.models import Project
from apps.core.errors import DomainError
from apps.core.processes import core_subprocess
from apps.machines import launcher as machines
from apps.machines.selectors import has_machines, machines_for
from apps.training.models import LOCAL
from workers.errors import RewardError
from workers.launch.job import LaunchedJob, Launcher
from workers.launch.kubernetes import KubernetesLauncher, KubernetesOptions
from workers.launch.kubernetes_manifests import PodOptions
from workers.launch.local import LocalLauncher
from workers.launch.ray_jobs import RayLauncher, RayOptions
from workers.launch.slurm import SlurmLauncher, SlurmOptions


@dataclass(frozen=True, slots=True)
class LauncherType:
    """make: the launcher, None where it is not set up. needs: what to set then."""

    name: str
    title: str
    make: Callable[[], Launcher | None]
    needs: str = ""


def _start_child(job: LaunchedJob) -> subprocess.Popen[bytes]:
    assert job.log is not None
    return core_subprocess.start(job.module, list(job.arguments), log=job.log)


def _slurm() -> Launcher | None:
    if not settings.SLURM["python"]:
        return None
    options = SlurmOptions(**settings.SLURM, setup=settings.SLURM_SETUP, directives=settings.SLURM_DIRECTIVES)
    return SlurmLauncher(options)


def _kubernetes() -> Launcher | None:
    if not settings.KUBERNETES_POD["image"]:
        return None
    options = KubernetesOptions(
        pod=PodOptions(**settings.KUBERNETES_POD),
        api=settings.KUBERNETES_API,
        token_file=settings.KUBERNETES_TOKEN_PATH,
        ca_file=settings.KUBERNETES_CA_PATH,
        kind=settings.KUBERNETES_KIND,
    )
    return KubernetesLauncher(options)


def _machine() -> Launcher | None:
    return machines.MachineLauncher() if has_machines() else None


def _ray() -> Launcher | None:
    return RayLauncher(RayOptions(**settings.RAY)) if settings.RAY["url"] else None


LAUNCHERS = (
    LauncherType(LOCAL, "This installation", lambda: LocalLauncher(_start_child)),
    LauncherType("slurm", "SLURM", _slurm, "set TOUCHSTONE_SLURM_PYTHON (docs/clusters.md)."),
    LauncherType(
        "kubernetes", "Kubernetes", _kubernetes, "set TOUCHSTONE_KUBERNETES_IMAGE (docs/clusters.md)."
    ),
    LauncherType("ray", "Ray", _ray, "set TOUCHSTONE_RAY_URL (docs/ray.md)."),
    LauncherType(machines.NAME, "A joined machine", _machine, "join one (docs/machines.md)."),
)
NAMES = tuple(each.name for each in LAUNCHERS)


def launcher_type(name: str) -> LauncherType:
    """Raises DomainError for a name that is none."""
    found = next((each for each in LAUNCHERS if each.name == name), None)
    if found is None:
        raise DomainError(f"{name!r} is not a launcher; take one of {', '.join(NAMES)}.", pointer="/on")
    return found


def launcher_named(name: str) -> Launcher:
    """Raises DomainError for one that is not set up."""
    found = launcher_type(name)
    launcher = found.make()
    if launcher is None:
        raise DomainError(f"{found.title} is not set up: {found.needs}", pointer="/on")
    return launcher


def set_up_launchers(project: Project | None = None) -> list[LauncherType]:
    """project: those that its runs may train on."""
    return [each for each in LAUNCHERS if each.make() is not None and _takes(each, project)]


def missing_launchers(project: Project) -> list[LauncherType]:
    there = set_up_launchers(project)
    return [each for each in LAUNCHERS if each not in there]


def _takes(launcher: LauncherType, project: Project | None) -> bool:
    return project is None or launcher.name != machines.NAME or machines_for(project).exists()


def check_launchers() -> str:
    """For `doctor`: each launcher that is set up answers. Raises DomainError."""
    says, wrong = [], []
    for each in set_up_launchers():
        launcher = each.make()
        if launcher is None or not launcher.is_remote:
            continue
        try:
            says.append(f"{each.name}: {launcher.check()}")
        except RewardError as error:
            wrong.append(f"{each.name}: {error.message}")
    if wrong:
        raise DomainError("; ".join(wrong))
    return "; ".join(says) or "only this machine; no cluster is set up"
