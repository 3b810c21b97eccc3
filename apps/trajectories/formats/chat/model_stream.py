"""The events of streamed answers of model APIs, one after another: JSON lines, or an array.

What the pieces of an answer are put together from is read in its whole form (`stream_events`).
"""

from typing import Any

from apps.trajectories.formats.chat import model_response
from apps.trajectories.formats.chat.stream_events import assembled, begins, kind_of
from apps.trajectories.formats.event_log import event_log
from apps.trajectories.formats.placed import storable
from workers.errors import InvalidRecord
from workers.schema import Trajectory

SIGN = "events of a streamed answer: `response.created`, `chat.completion.chunk`, `message_start` or others"
_PIECE = "a piece of the answer, which is read with the others put together"
_PLACE = "says what an event is and where its piece belongs; the answer is read put together"
LEFT_OUT = {
    **dict.fromkeys(
        ("/*/delta", "/*/choices/*/delta", "/*/contentBlockDelta", "/*/contentBlockStart"), _PIECE
    ),
    **dict.fromkeys(
        (
            *(
                "/*/type",
                "/*/object",
                "/*/index",
                "/*/sequence_number",
                "/*/output_index",
                "/*/content_index",
            ),
            *(
                "/*/item_id",
                "/*/summary_index",
                "/*/annotation_index",
                "/*/obfuscation",
                "/*/contentBlockStop",
            ),
            *("/*/choices/*/index", "/*/created", "/*/system_fingerprint"),
        ),
        _PLACE,
    ),
}
REPEATED = tuple(f"/*/{key}" for key in ("response", "item", "part", "message", "content_block", "model"))
Gathered = event_log(key=lambda event: begins(event) if isinstance(event, dict) else None)


def sniff(document: Any) -> bool:
    """A whole response of Gemini on its own is a stream of one."""
    if isinstance(document, list):
        return bool(document) and all(map(kind_of, document[:3]))
    return kind_of(document) not in ("", "gemini")


@storable
def read(document: Any) -> Trajectory:
    events = document if isinstance(document, list) else [document]
    response = assembled(events)
    if not response:
        raise InvalidRecord("these are no events of a streamed answer.")
    found = list(model_response.split(response))
    return model_response.read(found[0][1])
