from pathlib import Path

import pytest

from workers.memory import memory_bytes

LIMIT = 512 * 2**20


def place(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


@pytest.mark.parametrize("limited", ["", "pod/", "pod/unit.service/"])
def test_the_limit_of_a_group_or_of_one_around_it(tmp_path: Path, limited: str) -> None:
    place(tmp_path, "proc/self/cgroup", "0::/pod/unit.service\n")
    place(tmp_path, "sys/fs/cgroup/pod/unit.service/memory.max", "max\n")
    place(tmp_path, f"sys/fs/cgroup/{limited}memory.max", f"{LIMIT}\n")
    assert memory_bytes(tmp_path) == LIMIT


def test_a_container_that_sees_the_path_of_its_host(tmp_path: Path) -> None:
    place(tmp_path, "proc/self/cgroup", "0::/docker/abc\n")
    place(tmp_path, "sys/fs/cgroup/memory.max", f"{LIMIT}\n")
    assert memory_bytes(tmp_path) == LIMIT


def test_version_1(tmp_path: Path) -> None:
    place(tmp_path, "proc/self/cgroup", "5:cpu,cpuacct:/x\n4:memory:/x\n")
    place(tmp_path, "sys/fs/cgroup/memory/x/memory.limit_in_bytes", f"{LIMIT}\n")
    place(tmp_path, "sys/fs/cgroup/memory/memory.limit_in_bytes", f"{2**63 - 4096}\n")
    assert memory_bytes(tmp_path) == LIMIT


@pytest.mark.parametrize("groups", [None, "0::/\n"])
def test_without_a_limit_it_is_what_the_machine_has(tmp_path: Path, groups: str | None) -> None:
    if groups is not None:
        place(tmp_path, "proc/self/cgroup", groups)
    assert memory_bytes(tmp_path) > LIMIT
