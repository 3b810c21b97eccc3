"""`trl-sft`, `openrlhf-sft`, `axolotl-sft`: accepted trajectories for supervised fine-tuning, with loss masks per turn.

    {"prompt": [messages], "completion": [messages], "task": "...", "trajectory": 7, "origin": "person"}   trl-sft
    {"messages": [messages], ...}                                                                          openrlhf-sft
    {"messages": [{"role", "content", "train": true}, ...], ...}                                           axolotl-sft

and `tools`. Only the agent's turns are trained on, and of them none that was marked bad. `trl-sft` needs
`assistant_only_loss=True` where completions have several messages: the results of tools are in them. `origin` is that
of the feedback that accepted the trajectory, or `outcome`.
"""

from collections.abc import Iterator
from typing import Any

from apps.datasets.exports.accepted import DEFAULT, Acceptance, AcceptedTrajectory, accepted_trajectories
from apps.datasets.exports.columns import LeftOut, json_lines
from apps.datasets.exports.conversations import tools_field
from apps.datasets.exports.sft_rows import masked_messages, trained_prefix, trained_runs
from apps.datasets.models import DatasetVersion

Row = dict[str, Any]


def export_trl(
    dataset_version: DatasetVersion, split: str | None, left_out: LeftOut, rule: Acceptance = DEFAULT
) -> Iterator[str]:
    def rows(left_out: LeftOut) -> Iterator[Row]:
        for accepted in accepted_trajectories(dataset_version, split, rule, left_out):
            for prompt, completion in trained_runs(accepted, left_out):
                yield {"prompt": prompt, "completion": completion} | provenance(accepted)

    return json_lines(rows, left_out)


def export_openrlhf(
    dataset_version: DatasetVersion, split: str | None, left_out: LeftOut, rule: Acceptance = DEFAULT
) -> Iterator[str]:
    def rows(left_out: LeftOut) -> Iterator[Row]:
        for accepted in accepted_trajectories(dataset_version, split, rule, left_out):
            if messages := trained_prefix(accepted, left_out):
                yield {"messages": messages} | provenance(accepted)

    return json_lines(rows, left_out)


def export_axolotl(
    dataset_version: DatasetVersion, split: str | None, left_out: LeftOut, rule: Acceptance = DEFAULT
) -> Iterator[str]:
    def rows(left_out: LeftOut) -> Iterator[Row]:
        for accepted in accepted_trajectories(dataset_version, split, rule, left_out):
            if marked := masked_messages(accepted, left_out):
                messages = [message | {"train": is_trained} for message, is_trained in marked]
                yield {"messages": messages} | provenance(accepted)

    return json_lines(rows, left_out)


def provenance(accepted: AcceptedTrajectory) -> Row:
    """The fields of a row other than its messages."""
    trajectory = accepted.trajectory
    number = {"trajectory": int(trajectory.id)} if trajectory.id and trajectory.id.isdecimal() else {}
    return {"task": trajectory.task.id} | number | {"origin": accepted.origin} | tools_field(trajectory)
