"""Which trackers a run is logged to, as the form, the command and the API give it. Never an address or a secret."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from apps.core.errors import DomainError
from workers.schema.trackers import TRACKER_PACKAGES

MAX_PROJECT_LENGTH = 100
_NEVER = "not logged: the run ended before tracking began"


@dataclass(frozen=True, slots=True)
class TrackerOptions:
    """trackers: names of TRACKER_PACKAGES. project: MLflow's experiment, W&B's and Trackio's project; empty: what the
    worker's environment names, else `touchstone-PROJECT`. weights: whether the model is uploaded too."""

    trackers: tuple[str, ...] = ()
    project: str = ""
    weights: bool = False

    def values(self) -> dict[str, Any]:
        return asdict(self) | {"trackers": list(self.trackers)} if self.trackers else {}

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> "TrackerOptions":
        return cls(
            tuple(values.get("trackers", ())), values.get("project", ""), bool(values.get("weights", False))
        )


def check_tracker_options(trackers: Sequence[str], *, project: str, weights: bool) -> TrackerOptions:
    """Raises DomainError for a tracker that is unknown or not installed, and for a project's name that none takes."""
    names = tuple(dict.fromkeys(trackers))
    for name in names:
        if name not in TRACKER_PACKAGES:
            raise DomainError(
                f"There is no tracker {name!r}; available: {', '.join(TRACKER_PACKAGES)}.", pointer="/track"
            )
        package = TRACKER_PACKAGES[name]
        if not package.is_installed:
            raise DomainError(
                f"{package.title} is not installed. Run `{package.how_to_install}` in the environment of Touchstone, "
                "on each machine with a web or worker process, and restart them.",
                pointer="/track",
            )
    project = project.strip()
    pointer = "/track_project" if project else "/track_weights"
    if not names and (project or weights):
        raise DomainError(
            f"{pointer[1:]} has no effect without a tracker; select one with track.", pointer=pointer
        )
    if names == ("tensorboard",) and (project or weights):
        raise DomainError(
            f"{pointer[1:]} has no effect with TensorBoard, which has neither projects nor files; leave it out, or "
            "select another tracker too.",
            pointer=pointer,
        )
    allowed = set("-_. ")
    if len(project) > MAX_PROJECT_LENGTH or not all(char.isalnum() or char in allowed for char in project):
        raise DomainError(
            f"The project at the tracker may have up to {MAX_PROJECT_LENGTH} letters, digits, spaces and -_. only.",
            pointer="/track_project",
        )
    return TrackerOptions(names, project, weights)


@dataclass(frozen=True, slots=True)
class TrackerResult:
    """What became of a run at a tracker. url: of its page there, http or https; empty where it has none.

    problem: why the run is not, or not completely, there; empty where all is well. is_logged: whether it is there.
    """

    name: str
    title: str
    url: str
    problem: str
    is_logged: bool

    @property
    def sentence(self) -> str:
        where = self.url or ("it has no address to open" if self.is_logged else "not logged yet")
        return f"{self.title}: {self.problem}" if self.problem else f"{self.title}: {where}"


def tracker_results(
    options: Mapping[str, Any], states: Mapping[str, Mapping[str, str]], *, is_finished: bool
) -> list[TrackerResult]:
    """In the order in which the run names its trackers. is_finished: of the run."""
    results = []
    for name in TrackerOptions.read(options).trackers:
        state, package = states.get(name), TRACKER_PACKAGES.get(name)
        state = state if state is not None else {"problem": _NEVER if is_finished else ""}
        url = state.get("url", "")
        results.append(
            TrackerResult(
                name,
                package.title if package is not None else name,
                url if url.startswith(("http://", "https://")) else "",
                state.get("problem", ""),
                bool(state.get("id")),
            )
        )
    return results
