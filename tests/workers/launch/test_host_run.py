"""A host of a cluster whose installation is away for a while."""

import json
import signal
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.workers.launch.memory_files import MemoryFiles
from workers.errors import RewardError
from workers.launch import host_run, run_files
from workers.launch.host_run import ENDS, INPUTS, OUTPUTS, HostPlace, run_on_host
from workers.launch.run_files import HttpRunFiles, RunFilesRefused
from workers.launch.transfer import newest_index, write_folder

TRAINS = "import time; open('{run}/.lock', 'w'); open('{run}/model', 'w').write('new'); time.sleep(0.3)"


class Installation(MemoryFiles):
    """It answers no call of a job while the training runs."""

    is_patient = True
    refusal = RewardError("The installation is away.")
    refused = 0

    def names(self, folder: str) -> list[str]:
        if not self.is_patient:
            self.refused += 1
            raise self.refusal
        return super().names(folder)


@pytest.fixture
def installation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Installation:
    files = Installation()
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model").write_text("old")
    write_folder(files, INPUTS, {"config.json": tmp_path / "config.json"}, 1)
    write_folder(files, OUTPUTS, {"model": tmp_path / "model"}, 1)

    def command(training: Any) -> list[str]:
        return [sys.executable, "-c", TRAINS.format(run=training._run)]

    monkeypatch.setattr(host_run.HostTraining, "_command", command)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr(host_run, "_TICK", 0.02)
    monkeypatch.setattr(host_run, "_AGAIN_SECONDS", 0.05)
    return files


def test_a_training_goes_on_while_its_installation_is_away(
    installation: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_on_host(installation, HostPlace()) == 0
    assert installation.refused > 1
    assert "The training goes on" in capsys.readouterr().err
    (end,) = (content for name, content in installation.content.items() if name.startswith(ENDS))
    assert json.loads(end) == {"status": 0, "reason": ""}
    found = newest_index(installation, OUTPUTS)
    assert found is not None and found[0] == 2
    (digest,) = found[1].files["model"]
    assert installation.read(f"{OUTPUTS}/parts/{digest}") == b"new"


def test_a_job_whose_token_is_refused_ends(installation: Installation) -> None:
    installation.refusal = RunFilesRefused("The files of this run are closed to this job.")
    with pytest.raises(RunFilesRefused):
        run_on_host(installation, HostPlace())
    assert installation.refused == 1


def test_a_job_waits_for_long_before_and_after_its_training_only(monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: Any, **__: Any) -> None:
        raise httpx.ConnectError("refused")

    waited = list[float]()
    monkeypatch.setattr(run_files.time, "sleep", waited.append)
    files = HttpRunFiles("http://touchstone.example.org/run-files/1", "token")
    monkeypatch.setattr(files._http, "request", away)
    for is_patient in (True, False):
        files.is_patient = is_patient
        with pytest.raises(RewardError, match="TOUCHSTONE_CLUSTER_URL"):
            files.names("inputs/index")
        assert (sum(waited) > 60) == is_patient
        waited.clear()
