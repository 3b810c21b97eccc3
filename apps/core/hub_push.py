"""Push a folder to a Hugging Face hub, by `huggingface_hub`, at the command of an administrator.

The address of the hub is HF_ENDPOINT, the token HF_TOKEN or that of `hf auth login`, as everywhere in the library.
"""

import sys
from pathlib import Path
from typing import Any, Literal

from apps.core.errors import DomainError

Kind = Literal["dataset", "model"]
_PREFIXES: dict[Kind, str] = {"dataset": "hf://datasets/", "model": "hf://"}


def require_hub_name(address: str, *, kind: Kind) -> str:
    """ORG/NAME of hf://datasets/ORG/NAME, or of hf://ORG/NAME of a model. Raises DomainError."""
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id

    prefix = _PREFIXES[kind]
    name = address.removeprefix(prefix)
    is_other = kind == "model" and name.startswith(("datasets/", "spaces/"))
    if not address.startswith(prefix) or name.count("/") != 1 or is_other:
        raise DomainError(f"{address!r} is no {kind} of a hub; write {prefix}ORG/NAME.", pointer="/push")
    try:
        validate_repo_id(name)
    except HFValidationError as error:
        raise DomainError(f"{address!r} is no {kind} of a hub: {error}", pointer="/push") from None
    return name


def push_folder(
    folder: Path, address: str, *, kind: Kind, private: bool, message: str, replaced: str
) -> dict[str, Any]:
    """One commit with the folder's files. What is pushed to is made if it is new; its files that match `replaced` and
    are not in the folder are removed, so that no shard of an earlier version stays. Raises DomainError.

    private: nothing is pushed to what exists and is public. Returns {"url", "revision"}: the commit.
    """
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError

    name = require_hub_name(address, kind=kind)
    api = HfApi()
    unreachable: tuple[type[Exception], ...] = (*_transport_errors(), OSError)
    try:
        api.create_repo(name, repo_type=kind, private=private or None, exist_ok=True)
        if private and not api.repo_info(name, repo_type=kind).private:
            raise DomainError(
                f"{name} exists and is public, so nothing was pushed. Make it private on the hub, or say that it may "
                f"be public ({'leave out --private' if kind == 'dataset' else '--public'}).",
                pointer="/private",
            )
        commit = api.upload_folder(
            repo_id=name,
            repo_type=kind,
            folder_path=folder,
            commit_message=message,
            delete_patterns=[replaced],
        )
    except HfHubHTTPError as error:
        raise DomainError(
            _refusal(name, error.response.status_code, str(error.server_message or ""))
        ) from None
    except unreachable as error:
        reason = type(error).__name__
        raise DomainError(
            f"The hub at {api.endpoint} could not be reached ({reason}). Check HF_ENDPOINT."
        ) from None
    except RuntimeError as error:  # of the upload of one file
        raise DomainError(f"The push to {name} failed: {error} Push again; nothing was committed.") from None
    path = name if kind == "model" else f"datasets/{name}"
    return {"url": f"{api.endpoint}/{path}", "revision": commit.oid}


def _transport_errors() -> tuple[type[Exception], ...]:
    """Of the client that this version of the library calls by."""
    clients = (sys.modules.get(name) for name in ("httpx", "httpx2"))
    return tuple(client.HTTPError for client in clients if client is not None)


def _refusal(name: str, status: int, words: str) -> str:
    said = f": {words}" if words else ""
    if status in (401, 403):
        return (
            f"The hub refused the push to {name} with status {status}{said}. Set HF_TOKEN to a token that may write to "
            "it."
        )
    return f"The hub refused the push to {name} with status {status}{said}."
