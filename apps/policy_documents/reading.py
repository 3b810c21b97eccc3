"""Uploaded files as text. PDF and DOCX are read by a child process, with a time limit."""

import tempfile
import time
from pathlib import Path

from apps.core.errors import DomainError
from apps.core.processes import core_subprocess
from workers.errors import RewardError
from workers.policy_rules.documents import MAX_FILE_BYTES, PACKED_ENDINGS, ending_of, read_document

CHILD = "workers.policy_rules.documents"
SECONDS = 30


def read_upload(name: str, data: bytes) -> str:
    """Raises DomainError for what is no document, cannot be read, or takes too long."""
    ending = ending_of(name)
    if ending in PACKED_ENDINGS and len(data) <= MAX_FILE_BYTES:
        return _read_by_child(ending, data)
    try:
        return read_document(name, data)
    except RewardError as error:
        raise DomainError(error.message, pointer=error.pointer or "/file", status=422) from None


def _read_by_child(ending: str, data: bytes) -> str:
    deadline = time.monotonic() + SECONDS

    def check() -> None:
        if time.monotonic() > deadline:
            raise DomainError(
                f"The file took more than {SECONDS} seconds to read; paste its text instead.", pointer="/file"
            )

    with tempfile.TemporaryDirectory(prefix="policy-") as scratch:
        folder = Path(scratch)
        sources = {".pdf": folder / "document.pdf", ".docx": folder / "document.docx"}
        source, out = sources[ending], folder / "document.txt"
        source.write_bytes(data)
        try:
            core_subprocess.run_to_end(
                CHILD, [str(source), str(out)], folder=folder, what="The reading of the file", check=check
            )
        except DomainError as error:
            raise DomainError(error.message, pointer="/file", status=422) from None
        return out.read_text(encoding="utf-8")
