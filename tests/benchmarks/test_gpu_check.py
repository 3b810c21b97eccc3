"""`make gpu-check`: the same functions that run on a GPU, with a tiny model on the CPU, and how a failure is told."""

import json
import sys
from pathlib import Path

import pytest

from benchmarks import gpu_check
from benchmarks.gpu_check import CHECKS, TINY, GpuCheck, run_checks


@pytest.mark.parametrize("name", ["packing_exactness", "bfloat16_bounds", "peak_share"])
def test_a_check_runs_on_a_cpu(name: str) -> None:
    (found,) = run_checks("cpu", TINY, [name])
    assert found.verdict == "passed", found.text
    assert all(value >= 0 for value in found.measured.values())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [pytest.param("two_ranks", marks=pytest.mark.long), "throughput"])
def test_a_check_that_needs_processes_or_trl_runs_on_a_cpu(name: str) -> None:
    (found,) = run_checks("cpu", TINY, [name])
    assert found.verdict == "passed", found.text


def test_packing_that_is_not_exact_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mask that lets every token see all before it: then branches see each other."""
    from workers.models.backbones import decoder

    def everything_before(rows, dtype, window):
        mask = original(rows, dtype, window)
        longest = mask.shape[-1]
        return mask.new_full(mask.shape, float("-inf")).triu(1) if longest > 1 else mask

    original = decoder.additive_mask
    monkeypatch.setattr(decoder.Decoder, "require_exact", lambda self: None)
    monkeypatch.setattr(decoder, "additive_mask", everything_before)
    (found,) = run_checks("cpu", TINY, ["packing_exactness"])
    assert found.verdict == "failed", found.text


@pytest.mark.parametrize(("verdict", "status"), [("passed", 0), ("failed", 1), ("not run", 0)])
def test_the_exit_status(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], verdict: str, status: int
) -> None:
    def check(device: str, size: object, folder: Path) -> GpuCheck:
        return GpuCheck("only", verdict, "measured so", {"share": 0.5})  # type: ignore[arg-type]

    monkeypatch.setattr(gpu_check, "CHECKS", {"only": check})
    monkeypatch.setattr(sys, "argv", ["gpu_check", "--device", "cpu", "--json"])
    assert gpu_check.main() == status
    assert json.loads(capsys.readouterr().out)["only"]["verdict"] == verdict


def test_without_a_gpu_nothing_is_claimed_and_a_crash_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    found = run_checks("cuda", TINY, list(CHECKS))
    assert {(each.verdict, each.text) for each in found} == {("not run", "not run: no GPU")}

    def broken(device: str, size: object, folder: Path) -> GpuCheck:
        raise ValueError("no kernel")

    monkeypatch.setitem(gpu_check.CHECKS, "peak_share", broken)
    (failed,) = run_checks("cpu", TINY, ["peak_share"])
    assert (failed.verdict, failed.text) == ("failed", "ValueError: no kernel")
