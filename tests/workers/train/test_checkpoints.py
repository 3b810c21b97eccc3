import shutil
from pathlib import Path

import pytest
import torch
from torch import nn

from workers.errors import RewardError
from workers.train.checkpoints import (
    checkpoint_path,
    file_sizes,
    newest_checkpoint,
    save_checkpoint,
    shards_folder,
)
from workers.train.older_checkpoints import require_same_trained_weights


def save(folder: Path, *steps: int) -> None:
    for step in steps:
        save_checkpoint(folder, step, {"step": step, "weights": {"w": torch.full((3,), float(step))}})


def test_the_newest_comes_back(tmp_path) -> None:
    save(tmp_path, 3, 12, 7)
    state, unreadable = newest_checkpoint(tmp_path)
    assert state is not None
    assert (state["step"], unreadable) == (12, [])
    assert state["weights"]["w"].tolist() == [12.0] * 3


def test_nothing_there(tmp_path) -> None:
    assert newest_checkpoint(tmp_path / "none") == (None, [])


def test_two_are_kept(tmp_path) -> None:
    save(tmp_path, 1, 2, 3)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step-000000002.pt", "step-000000003.pt"]


def test_an_unfinished_one_is_not_looked_at_and_goes(tmp_path) -> None:
    save(tmp_path, 1)
    (tmp_path / "step-000000002.part").write_bytes(b"half")
    state, _ = newest_checkpoint(tmp_path)
    assert state is not None
    assert state["step"] == 1
    save(tmp_path, 2)
    assert not list(tmp_path.glob("*.part"))


def test_one_that_cannot_be_read_leaves_the_one_before(tmp_path) -> None:
    save(tmp_path, 1, 2)
    whole = (tmp_path / "step-000000002.pt").read_bytes()
    for broken in (b"", b"no checkpoint", whole[: len(whole) // 2]):
        (tmp_path / "step-000000002.pt").write_bytes(broken)
        state, unreadable = newest_checkpoint(tmp_path)
        assert state is not None
        assert (state["step"], unreadable) == (1, ["step-000000002.pt"])


def test_code_in_a_checkpoint_is_never_run(tmp_path) -> None:
    class Evil:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return (Path.touch, (tmp_path / "run",))  # type: ignore[return-value]

    torch.save({"step": 9, "evil": Evil()}, tmp_path / "step-000000009.pt")
    assert newest_checkpoint(tmp_path) == (None, ["step-000000009.pt"])
    assert not (tmp_path / "run").exists()


def save_with_shards(folder: Path, step: int) -> None:
    shards = shards_folder(checkpoint_path(folder, step))
    shards.mkdir(parents=True)
    (shards / "part").write_bytes(b"of a sharded model")
    save_checkpoint(folder, step, {"step": step, "shards": file_sizes(shards)})


def test_shards_go_with_their_checkpoint(tmp_path) -> None:
    for step in (1, 2, 3):
        save_with_shards(tmp_path, step)
    unfinished = shards_folder(checkpoint_path(tmp_path, 9))
    unfinished.mkdir()
    save_with_shards(tmp_path, 4)
    assert sorted(path.name for path in tmp_path.glob("*.shards")) == [
        "step-000000003.shards",
        "step-000000004.shards",
    ]
    save(tmp_path, 4)  # by a run that is not sharded any more
    assert [path.name for path in tmp_path.glob("*.shards")] == ["step-000000003.shards"]


def test_a_checkpoint_whose_shards_are_not_all_there_leaves_the_one_before(tmp_path) -> None:
    save_with_shards(tmp_path, 1)
    save_with_shards(tmp_path, 2)
    part = shards_folder(checkpoint_path(tmp_path, 2)) / "part"
    for damage in (lambda: part.write_bytes(b"of"), part.unlink, lambda: shutil.rmtree(part.parent)):
        damage()
        state, unreadable = newest_checkpoint(tmp_path)
        assert state is not None
        assert (state["step"], unreadable) == (1, ["step-000000002.pt"])


def test_a_checkpoint_without_a_part_that_is_trained_now_is_refused() -> None:
    module = nn.ModuleDict({"old": nn.Linear(2, 1), "new": nn.Linear(2, 1), "frozen": nn.Linear(2, 1)})
    module["frozen"].requires_grad_(False)
    weights = {name: weight for name, weight in module.state_dict().items() if name.startswith("old")}
    with pytest.raises(RewardError, match=r"lacks new\.bias and 1 more: it is of an earlier version"):
        require_same_trained_weights(weights, module)
    require_same_trained_weights(dict(module.state_dict()), module)
