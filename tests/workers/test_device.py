"""Which device a name stands for, and what is said of one that is not there."""

import pytest
import torch

from workers.device import DeviceError, choose_device, main


@pytest.fixture
def two_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "set_device", lambda device: None)


@pytest.mark.parametrize("name", ["gpu", "tpu", "cuda:", "cuda:-1", "cuda:0,1", "CPU"])
def test_a_device_that_is_none(name: str) -> None:
    with pytest.raises(DeviceError, match=f"unknown device '{name}'; use auto, cpu, cuda, or cuda:N"):
        choose_device(name)


def test_devices_of_a_machine_with_gpus(two_gpus: None, monkeypatch: pytest.MonkeyPatch) -> None:
    found = [str(choose_device(name)) for name in ("auto", "cuda", "cuda:1", "cpu")]
    assert found == ["cuda:0", "cuda:0", "cuda:1", "cpu"]
    with pytest.raises(
        DeviceError, match=r"cuda:7, but this machine has 2 GPUs: cuda:0, cuda:1\. Use one of"
    ):
        choose_device("cuda:7")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    monkeypatch.setenv("LOCAL_RANK", "1")
    assert str(choose_device("auto")) == "cuda:1"
    with pytest.raises(DeviceError, match="cuda:1, one GPU, for 2 processes"):
        choose_device("cuda:1")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    with pytest.raises(
        DeviceError, match=r"4 processes are to train on this machine.*finds 2; start at most 2"
    ):
        choose_device("cuda")


def test_the_command_tells_whether_a_machine_has_it(
    two_gpus: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main("cuda", 2) == main("cpu") == 0
    assert main("cuda", 3) == 2
    assert "start at most 2 here" in capsys.readouterr().err
