"""Who serves a version of a reward program. Endpoints are of an app above, which registers what it knows."""

from collections.abc import Callable

from apps.reward_programs.models import RewardProgramVersion

_USES: list[Callable[[RewardProgramVersion], list[str]]] = []


def register(find: Callable[[RewardProgramVersion], list[str]]) -> None:
    """find: names of endpoints that serve a version, or are about to."""
    if find not in _USES:
        _USES.append(find)


def endpoints_that_serve(program: RewardProgramVersion) -> list[str]:
    return [name for find in _USES for name in find(program)]
