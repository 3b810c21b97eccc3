"""Accepted trajectories as conversations whose agent turns are trained on, except those that were marked bad.

A format with a mask per message writes the whole conversation (`masked_messages`). One that trains on every agent turn
of a row gets the conversation up to the first masked turn (`trained_prefix`). One that trains on a completion gets a
row for each run of turns without a masked one between (`trained_runs`).
"""

from collections.abc import Iterator

from apps.datasets.exports.accepted import AcceptedTrajectory
from apps.datasets.exports.columns import LeftOut
from apps.datasets.exports.conversations import (
    Message,
    count_named_media,
    message_text,
    prompt_and_rest,
    without_images,
)

ALL_MASKED = "trajectories in which no agent step is trained on"
AFTER_MASK = "agent steps after one that was marked bad, which the format cannot mask"
BAD = "agent steps that were marked bad"


def masked_messages(accepted: AcceptedTrajectory, left_out: LeftOut) -> list[tuple[Message, bool]]:
    """Each message, and whether it is trained on, up to the last that is; empty, and counted, where none is.

    An agent message in which there is nothing to read is not trained on.
    """
    prompt, rest = prompt_and_rest(accepted.trajectory)
    messages = without_images([*prompt, *rest], left_out)
    marked: list[tuple[Message, bool]] = []
    agent_step = 0
    for message in messages:
        is_agent = message["role"] == "assistant"
        is_trained = is_agent and agent_step not in accepted.bad_steps and bool(message_text(message).strip())
        left_out[BAD] += is_agent and agent_step in accepted.bad_steps
        agent_step += is_agent
        marked.append((message, is_trained))
    while marked and not marked[-1][1]:
        marked.pop()
    if not marked:
        left_out[ALL_MASKED] += 1
        return []
    count_named_media(left_out, accepted.trajectory)
    return marked


def trained_prefix(accepted: AcceptedTrajectory, left_out: LeftOut) -> list[Message]:
    """The conversation up to the last agent turn before a masked one; empty where the first one is masked."""
    marked = masked_messages(accepted, left_out)
    masked = (
        at for at, (message, trained) in enumerate(marked) if message["role"] == "assistant" and not trained
    )
    end = next(masked, len(marked))
    left_out[AFTER_MASK] += sum(trained for _, trained in marked[end:])
    while end and not marked[end - 1][1]:
        end -= 1
    if marked and not end:
        left_out[ALL_MASKED] += 1
    return [message for message, _ in marked[:end]]


def trained_runs(
    accepted: AcceptedTrajectory, left_out: LeftOut
) -> Iterator[tuple[list[Message], list[Message]]]:
    """Prompt and completion of each run. All agent turns of a completion are trained on; every such turn is in one."""
    marked = masked_messages(accepted, left_out)
    start: int | None = None
    last = 0
    for at, (message, trained) in enumerate(marked):
        if trained:
            start, last = (at if start is None else start), at
        elif message["role"] == "assistant" and start is not None:
            yield _run(marked, start, last)
            start = None
    if start is not None:
        yield _run(marked, start, last)


def _run(marked: list[tuple[Message, bool]], start: int, last: int) -> tuple[list[Message], list[Message]]:
    messages = [message for message, _ in marked[: last + 1]]
    return messages[:start], messages[start:]
