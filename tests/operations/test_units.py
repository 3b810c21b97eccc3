"""The systemd units: little is left to a process that is taken over."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OPERATIONS = ROOT / "docs" / "operations"
UNITS = ["touchstone.service", "touchstone@.service"]


@pytest.mark.parametrize("unit", UNITS)
def test_units_are_confined(unit: str) -> None:
    lines = (OPERATIONS / unit).read_text().splitlines()
    assert {
        "NoNewPrivileges=yes",
        "CapabilityBoundingSet=",
        "ProtectSystem=strict",
        "ProtectHome=yes",
        "PrivateTmp=yes",
        "UMask=0077",
        "StateDirectoryMode=0700",
        "SystemCallFilter=@system-service",
        "RestrictNamespaces=yes",
        "ProtectKernelTunables=yes",
        "DevicePolicy=closed",
    } <= set(lines)
    assert any(line.startswith("LimitNOFILE=") for line in lines)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
@pytest.mark.parametrize("unit", UNITS)
def test_systemd_understands_them_and_finds_them_little_exposed(unit: str) -> None:
    """Its score goes from 0 to 10 (here times ten); a unit without any of it has 9.6."""
    path = str(OPERATIONS / unit)
    verified = subprocess.run(
        ["systemd-analyze", "verify", path], capture_output=True, text=True, check=False
    )
    said = [
        line for line in verified.stderr.splitlines() if "is not executable" not in line and unit[:10] in line
    ]
    assert said == []
    command = ["systemd-analyze", "security", "--offline=true", "--threshold=25", path]
    scored = subprocess.run(command, capture_output=True, text=True, check=False)
    assert scored.returncode == 0, scored.stdout[-2000:]
