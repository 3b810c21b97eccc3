"""The table of export formats. One module per format: a stream of lines, or a folder of files.

An exporter of lines takes the dataset version and a split (None: all of them) and yields lines that end with a newline.
An exporter of folders also takes the folder, and yields once per row. What a format has no row for is counted by reason
in the third argument, which is complete once the last line is read (`jsonl` leaves nothing out), and for every other
format of lines before the first. Formats that `select` take which trajectories count as accepted as their last.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from apps.core.errors import DomainError
from apps.datasets.exports import (
    axolotl,
    corrections,
    failed_steps,
    lines,
    llamafactory,
    openrlhf,
    parquet,
    prompts,
    reflections,
    rewardbench,
    sft,
    trl,
    trl_stepwise,
    trl_unpaired,
    verl,
)
from apps.datasets.exports.accepted import DEFAULT, Acceptance
from apps.datasets.exports.columns import LeftOut
from apps.datasets.models import DatasetVersion
from apps.datasets.splits import SPLITS

Exporter = Callable[..., Iterator[str]]


@dataclass(frozen=True, slots=True)
class ExportFormat:
    """trainer: for whom it is; formats of one trainer are shown together."""

    name: str
    trainer: str
    description: str
    exporter: Exporter
    is_folder: bool = False
    selects: bool = False


_TABLE = (
    ExportFormat(
        "trl",
        "TRL",
        "preferences for RewardTrainer and DPOTrainer: explicit prompt, conversational, with margins",
        trl.export,
    ),
    ExportFormat(
        "trl-unpaired",
        "TRL",
        "single trajectories labelled good or bad, for KTOTrainer: ratings and unpaired preferences",
        trl_unpaired.export,
    ),
    ExportFormat(
        "trl-stepwise",
        "TRL",
        "steps labelled right or wrong, for process reward models: step labels",
        trl_stepwise.export,
    ),
    ExportFormat(
        "trl-sft",
        "TRL",
        "accepted trajectories for SFTTrainer, without the turns that were marked bad",
        sft.export_trl,
        selects=True,
    ),
    ExportFormat(
        "trl-step-pairs",
        "TRL",
        "corrections of steps for DPOTrainer and RewardTrainer: the corrected step against the step as it was",
        corrections.export_trl_pairs,
    ),
    ExportFormat(
        "trl-sft-revised",
        "TRL",
        "trajectories up to their first error with the correction in its place, for SFTTrainer",
        corrections.export_trl_sft,
    ),
    ExportFormat(
        "trl-failed-steps",
        "TRL",
        "the actions that failed, with their corrections, for KTOTrainer: steps marked bad, and failed tool calls",
        failed_steps.export,
    ),
    ExportFormat(
        "trl-reflections",
        "TRL",
        "an attempt, what was written about it, and the next attempt at the task, for a model that reflects",
        reflections.export,
    ),
    ExportFormat("trl-prompts", "TRL", "prompts and reference answers, for GRPOTrainer", prompts.export_trl),
    ExportFormat(
        "openrlhf", "OpenRLHF", "preferences for the reward trainer: full conversations", openrlhf.export
    ),
    ExportFormat(
        "openrlhf-dpo", "OpenRLHF", "preferences for the DPO trainer: explicit prompt", openrlhf.export_dpo
    ),
    ExportFormat(
        "openrlhf-sft",
        "OpenRLHF",
        "accepted trajectories for the SFT trainer, up to the first turn that was marked bad",
        sft.export_openrlhf,
        selects=True,
    ),
    ExportFormat(
        "openrlhf-step-pairs",
        "OpenRLHF",
        "corrections of steps for the DPO trainer: the corrected step against the step as it was",
        corrections.export_openrlhf_pairs,
    ),
    ExportFormat(
        "openrlhf-sft-revised",
        "OpenRLHF",
        "trajectories up to their first error with the correction in its place, for the SFT trainer",
        corrections.export_openrlhf_sft,
    ),
    ExportFormat(
        "openrlhf-prompts",
        "OpenRLHF",
        "prompts and reference answers, for the PPO trainer",
        prompts.export_openrlhf,
    ),
    ExportFormat(
        "verl",
        "verl",
        "Parquet files: prompts for RL, accepted trajectories for SFT, preferences for reward models",
        verl.export,
        is_folder=True,
        selects=True,
    ),
    ExportFormat(
        "llamafactory",
        "LLaMA-Factory",
        "a dataset_dir: preferences, KTO and SFT in ShareGPT form, with dataset_info.json",
        llamafactory.export,
        is_folder=True,
        selects=True,
    ),
    ExportFormat(
        "axolotl-sft",
        "axolotl",
        "accepted trajectories for chat_template, with a mark on each message that is trained on",
        sft.export_axolotl,
        selects=True,
    ),
    ExportFormat(
        "axolotl-dpo", "axolotl", "preferences for DPO with chat_template.default", axolotl.export_dpo
    ),
    ExportFormat(
        "rewardbench",
        "Evaluation",
        "preferences as text, in RewardBench's test set format",
        rewardbench.export,
    ),
    ExportFormat(
        "parquet",
        "Archive and hub",
        "every record as Parquet with a dataset card, for load_dataset and the Hugging Face hub",
        parquet.export,
        is_folder=True,
    ),
    ExportFormat("jsonl", "Archive and hub", "every record, as frozen", lines.export),
)
FORMATS: dict[str, ExportFormat] = {each.name: each for each in _TABLE}
EXPORTS: dict[str, Exporter] = {each.name: each.exporter for each in _TABLE if not each.is_folder}
FOLDER_EXPORTS: dict[str, Exporter] = {each.name: each.exporter for each in _TABLE if each.is_folder}


def formats_by_trainer() -> dict[str, list[ExportFormat]]:
    """In the order of the table."""
    grouped: dict[str, list[ExportFormat]] = {}
    for each in _TABLE:
        grouped.setdefault(each.trainer, []).append(each)
    return grouped


def require_format(format: str, split: str | None, rule: Acceptance = DEFAULT) -> ExportFormat:
    """Raises DomainError for a format or a split that there is not, and for a rule that the format does not take."""
    if format not in FORMATS:
        raise DomainError(f"Unknown format {format!r}; choose from {', '.join(FORMATS)}.", pointer="/format")
    if split is not None and split not in SPLITS:
        raise DomainError(f"Unknown split {split!r}; choose from {', '.join(SPLITS)}.", pointer="/split")
    if rule != DEFAULT and not FORMATS[format].selects:
        selecting = ", ".join(each.name for each in _TABLE if each.selects)
        raise DomainError(
            f"{format} does not select accepted trajectories; accepted_by, criterion and threshold belong to "
            f"{selecting}.",
            pointer="/accepted_by",
        )
    return FORMATS[format]


def export_lines(
    dataset_version: DatasetVersion,
    format: str,
    split: str | None,
    left_out: LeftOut,
    rule: Acceptance = DEFAULT,
) -> Iterator[str]:
    """The lines of a format of lines."""
    found = require_format(format, split, rule)
    more = (rule,) if found.selects else ()
    return found.exporter(dataset_version, split, left_out, *more)


def write_folder(
    dataset_version: DatasetVersion,
    format: str,
    split: str | None,
    left_out: LeftOut,
    folder: Path,
    rule: Acceptance = DEFAULT,
) -> Iterator[str]:
    """Writes a format of folders into `folder`, row by row while it is iterated over."""
    found = require_format(format, split, rule)
    more = (rule,) if found.selects else ()
    return found.exporter(dataset_version, split, left_out, folder, *more)
