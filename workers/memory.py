"""How much memory processes of this machine may have together."""

import os
from pathlib import Path

_FILES = {"memory.max": Path("sys/fs/cgroup"), "memory.limit_in_bytes": Path("sys/fs/cgroup/memory")}


def memory_bytes(root: Path = Path("/")) -> int:
    """Physical memory, or less where a container or a service unit has a limit (control groups, versions 1 and 2)."""
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([physical, *_limits(root)])


def _limits(root: Path) -> list[int]:
    """Of the control groups that this process is in, and of those that they are in."""
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:  # not Linux
        return []
    found = []
    for line in lines:
        _, controllers, group = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        name = "memory.limit_in_bytes" if controllers else "memory.max"
        top = root / _FILES[name]
        inner = top / group.strip("/")
        # In a container the group's path may be that of the host, which is not there; its own limit is at the top.
        for folder in (inner, *inner.parents):
            if not folder.is_relative_to(top):
                break
            try:
                found.append(int((folder / name).read_text()))
            except (OSError, ValueError):  # not there, or "max"
                continue
    return found
