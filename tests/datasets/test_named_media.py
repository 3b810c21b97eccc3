"""Media that exports of text name in brackets are counted."""

from collections import Counter

from apps.datasets.exports.conversations import conversation_messages, count_named_media
from workers.schema import Part, Step, Task, Trajectory


def test_media_named_in_brackets_are_counted() -> None:
    parts = (
        Part(text="Listen:"),
        Part(type="audio", source="a.wav"),
        Part(type="image", source="https://x.example/a.png"),
        Part(type="image", source="sha256:aa"),
        Part(type="file", source="f.pdf", text="the words of the file"),
    )
    trajectory = Trajectory(steps=(Step(source="user", message=parts),), task=Task(id="t"))
    (message,) = conversation_messages(trajectory)
    assert [part.get("text") for part in message["content"]][1:4:2] == ["[audio]", "[image]"]
    left_out: Counter[str] = Counter()
    count_named_media(left_out, trajectory)
    assert left_out == {"audio named in the text": 1, "images named in the text": 1}
