"""The experiment trackers that a training run can be logged to, and what each needs installed."""

from dataclasses import dataclass
from importlib.util import find_spec

VARIABLES = (
    "TOUCHSTONE_TRACKER_VARIABLES"  # names further variables that trackers get; their values may be secret
)


@dataclass(frozen=True, slots=True)
class TrackerPackage:
    """module: whose presence means that the tracker can be used. package: what pip installs."""

    title: str
    module: str
    package: str

    @property
    def is_installed(self) -> bool:
        try:
            return find_spec(self.module) is not None
        except ValueError:  # a module that was blocked, as tests do
            return False

    @property
    def how_to_install(self) -> str:
        return f"pip install -c constraints.txt {self.package}"


TRACKER_PACKAGES: dict[str, TrackerPackage] = {
    "mlflow": TrackerPackage("MLflow", "mlflow", "mlflow-skinny"),
    "wandb": TrackerPackage("Weights & Biases", "wandb", "wandb"),
    "tensorboard": TrackerPackage("TensorBoard", "tensorboard", "tensorboard"),
    "trackio": TrackerPackage("Trackio", "trackio", "trackio"),
}


def printable(text: str) -> str:
    """Without what PostgreSQL (NUL, lone surrogates) or a page cannot hold."""
    return "".join(character for character in text if character.isprintable())
