"""The kinds of text that are read although they are no JSON, in the order they are tried."""

from apps.trajectories.formats import event_stream, yaml_text
from apps.trajectories.formats.benchmarks import appworld
from apps.trajectories.formats.chat import cassette
from apps.trajectories.formats.coding_agents import aider, cursor, specstory
from apps.trajectories.formats.computer_use import omniact, webarena_page
from apps.trajectories.formats.frameworks import langgraph_stream
from apps.trajectories.formats.general import react_text, transcript_text
from apps.trajectories.formats.text_kind import TextKind

TEXT_KINDS: tuple[TextKind, ...] = (
    aider.CHATS,
    aider.CALLS,
    cursor.EXPORT,
    specstory.HISTORY,
    webarena_page.PAGE,
    appworld.INTERACTIONS,
    appworld.EVALUATION,
    omniact.SCRIPTS,
    cassette.CASSETTE,
    langgraph_stream.STREAM,
    event_stream.STREAM,
    react_text.RUN,
    transcript_text.TRANSCRIPT,
    yaml_text.DOCUMENT,
)


def text_kind(head: str) -> TextKind | None:
    """Of a file that begins like this; None for others."""
    return next((kind for kind in TEXT_KINDS if kind.begins(head)), None)
