"""Profiles: address, project and key of a server, in a file that only its user can read.

The file is `credentials.json` in the folder `touchstone` of the user's settings: `$XDG_CONFIG_HOME` or `~/.config`; on
Windows `%APPDATA%`, on macOS `~/Library/Application Support`.
"""

import json
import os
import stat
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from touchstone_client.cli.statuses import UsageFailed

DEFAULT = "default"
_FILE = "credentials.json"


@dataclass(frozen=True, slots=True)
class Profile:
    url: str
    project: str
    key: str

    def __repr__(self) -> str:
        return f"Profile({self.url!r}, {self.project!r})"  # not the key: it would be in logs


def settings_folder() -> Path:
    if (folder := os.environ.get("XDG_CONFIG_HOME")) and Path(folder).is_absolute():
        return Path(folder) / "touchstone"
    if sys.platform == "win32" and (folder := os.environ.get("APPDATA")):
        return Path(folder) / "touchstone"
    if sys.platform == "darwin":
        return Path.home() / "Library/Application Support/touchstone"
    return Path.home() / ".config/touchstone"


def profiles_file() -> Path:
    return settings_folder() / _FILE


def read_profiles() -> dict[str, Profile]:
    """By name; none where there is no file. Raises UsageFailed for a file that is no list of profiles."""
    path = profiles_file()
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return {str(name): Profile(**values) for name, values in found["profiles"].items()}
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise UsageFailed(f"{path} cannot be read: {error.strerror}.") from None
    except (AttributeError, KeyError, TypeError, ValueError):
        raise UsageFailed(
            f"{path} is not a list of profiles; delete it, and run `touchstone login`."
        ) from None


def is_open_to_others(path: Path) -> bool:
    """Whether its permissions let other users of the machine read it."""
    if os.name != "posix" or not path.exists():
        return False
    return bool(path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO))


def save_profile(name: str, profile: Profile) -> None:
    _write(read_profiles() | {name: profile})


def remove_profile(name: str) -> Profile:
    """Raises UsageFailed where there is none of the name."""
    profiles = read_profiles()
    if name not in profiles:
        raise UsageFailed(f"There is no profile {name!r} on this computer, so nothing was removed.")
    profile = profiles.pop(name)
    _write(profiles)
    return profile


def _write(profiles: dict[str, Profile]) -> None:
    """Replace the file, which is never there with other permissions or half written."""
    path = profiles_file()
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        content: dict[str, Any] = {"profiles": {name: asdict(each) for name, each in profiles.items()}}
        descriptor, temporary = tempfile.mkstemp(prefix=f".{_FILE}-", dir=path.parent)  # mode 0600
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                json.dump(content, file, indent=2)
                file.write("\n")
            Path(temporary).replace(path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise UsageFailed(f"{path} cannot be written: {error.strerror}.") from None
