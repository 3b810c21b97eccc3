"""The client's wheel, made from the client that runs here: trainers install it from their own server.

A wheel of pure Python is a zip with a list of its files (PEP 427), so no build tool is needed, and the same files make
the same bytes on every machine.
"""

import base64
import hashlib
import io
import zipfile
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from apps.core.distributions import CLIENT, client_project, client_wheel_name
from apps.core.package_files import FILES

PACKAGE = "touchstone_client"
_WHEEL = "Wheel-Version: 1.0\nGenerator: touchstone\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
_EARLIEST = (1980, 1, 1, 0, 0, 0)  # that a zip knows


@dataclass(frozen=True)
class ClientWheel:
    file_name: str
    content: bytes

    @cached_property
    def sha256(self) -> str:
        return hashlib.sha256(self.content).hexdigest()


@cache
def client_wheel() -> ClientWheel:
    project = client_project()
    name = f"{CLIENT.replace('-', '_')}-{project['version']}"
    files = _package_files() | _metadata_files(project, f"{name}.dist-info")
    record = f"{name}.dist-info/RECORD"
    files[record] = _record(files, record)
    return ClientWheel(file_name=client_wheel_name(), content=_archive(files))


def _package_files() -> dict[str, bytes]:
    spec = find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"{PACKAGE} is not installed", name=PACKAGE)
    folder = Path(spec.origin).parent
    files = [path for path in folder.rglob("*") if path.suffix in (".py", ".typed") and path.is_file()]
    return {f"{PACKAGE}/{path.relative_to(folder).as_posix()}": path.read_bytes() for path in files}


def _metadata_files(project: dict[str, Any], folder: str) -> dict[str, bytes]:
    scripts = [f"{name} = {target}" for name, target in project["scripts"].items()]
    texts = {
        "METADATA": _metadata(project),
        "entry_points.txt": "\n".join(["[console_scripts]", *scripts, ""]),
        "WHEEL": _WHEEL,
    }
    return {f"{folder}/{name}": text.encode() for name, text in texts.items()}


def _metadata(project: dict[str, Any]) -> str:
    """Core metadata 2.4 of what the client's pyproject.toml says."""
    lines = [
        "Metadata-Version: 2.4",
        f"Name: {project['name']}",
        f"Version: {project['version']}",
        f"Summary: {project['description']}",
        f"License-Expression: {project['license']}",
        f"Requires-Python: {project['requires-python']}",
        "Description-Content-Type: text/markdown",
        *(f"Requires-Dist: {needed}" for needed in project["dependencies"]),
    ]
    for extra, needs in project["optional-dependencies"].items():
        lines.append(f"Provides-Extra: {extra}")
        lines += [f'Requires-Dist: {needed}; extra == "{extra}"' for needed in needs]
    readme = (FILES / "client" / project["readme"]).read_text()
    return "\n".join([*lines, "", readme])


def _record(files: dict[str, bytes], itself: str) -> bytes:
    lines = [f"{name},sha256={_digest(content)},{len(content)}" for name, content in sorted(files.items())]
    return "\n".join([*lines, f"{itself},,", ""]).encode()


def _digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def _archive(files: dict[str, bytes]) -> bytes:
    """The package first and its metadata last, as PEP 427 recommends; every file as of one moment."""
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        for name in sorted(files, key=lambda name: (".dist-info/" in name, name)):
            entry = zipfile.ZipInfo(name, _EARLIEST)
            entry.external_attr = 0o100644 << 16
            archive.writestr(entry, files[name])  # stored: what zlib makes of it differs between versions
    return written.getvalue()
