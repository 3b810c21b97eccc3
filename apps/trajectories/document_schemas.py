"""Schemas of trajectories as documents, for the OpenAPI document."""

from typing import Annotated, Any

from apps.core.http.document_types import described, described_struct
from workers.schema.atif_model import AtifTrajectory
from workers.schema.jsonschemas import ITEM, MESSAGES

Json = dict[str, Any]
_TEXT: Json = {"type": "string"}
_TASK: Json = {
    "type": "object",
    "properties": {
        "id": _TEXT,
        "instruction": _TEXT,
        "reference": _TEXT,
        "metadata": {"type": "object", "description": "the source's"},
    },
    "required": ["id"],
}
CHAT: Json = {
    "description": "A trajectory as OpenAI chat messages; the format `openai` reads it back.",
    "type": "object",
    "properties": {
        "id": _TEXT,
        "task": _TASK,
        "messages": MESSAGES,
        "agent": {"type": "object", "properties": {"name": _TEXT, "version": _TEXT}},
        "reward": {"type": "number"},
        "success": {"type": "boolean"},
        "metadata": {"type": "object", "description": "the source's"},
        "added": {"type": "object", "description": "ids that were written where OpenAI requires them"},
    },
    "required": ["task", "messages"],
}
UPLOAD: Json = {
    "description": "A trajectory in any format of docs/formats.md, such as ATIF or chat messages.",
    "type": "object",
}

ItemDocument = Annotated[Json, described("Item", ITEM)]
AtifDocument = Annotated[Json, described_struct(AtifTrajectory)]
ChatDocument = Annotated[Json, described("ChatTrajectory", CHAT)]
UploadedDocument = Annotated[Json, described("UploadedTrajectory", UPLOAD)]
