"""Who serves a version of a reward program. Endpoints are of an app above, which registers what it knows."""

from collections.abc import Callable

from apps.core.registries import Registry
from apps.reward_programs.models import RewardProgramVersion

_USES: Registry[Callable[[RewardProgramVersion], list[str]]] = Registry()


def register(find: Callable[[RewardProgramVersion], list[str]]) -> None:
    """find: names of endpoints that serve a version, or are about to."""
    _USES.add(find)


def endpoints_that_serve(program: RewardProgramVersion) -> list[str]:
    return [name for find in _USES for name in find(program)]
