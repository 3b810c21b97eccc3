"""A dataset version holds the pictures of its trajectories, as models read them, by the hash of their files."""

from typing import Any

import numpy as np

from apps.accounts.models import Project
from apps.core.storage import artifacts
from apps.datasets.selectors import data_folder
from apps.trajectories.attachments import attachments_by_digest, file_name
from tests.datasets.feedback import freeze, import_pairs, pair
from tests.picture_files import BLUE, RED, coloured, data_url, file_of
from workers.schema.picture_archive import PICTURES, PictureArchive
from workers.schema.pictures import picture_bytes


def answer_with_picture(answer: str, source: str) -> dict[str, Any]:
    picture = {"type": "image_url", "image_url": {"url": source}}
    return {
        "messages": [
            {"role": "user", "content": "Make the page."},
            {"role": "assistant", "content": [{"type": "text", "text": answer}, picture]},
        ]
    }


def pictured(task: str, first: str, second: str) -> dict[str, Any]:
    return pair(task) | {"a": answer_with_picture("Done.", first), "b": answer_with_picture("Done.", second)}


def test_pictures_are_in_the_version_and_addresses_are_not(project: Project) -> None:
    red, blue = (file_of(coloured(colour)) for colour in (RED, BLUE))
    large = file_of(coloured(RED, width=1600, height=900))
    pairs = [pictured(f"t{n}", data_url(red), data_url(blue)) for n in range(6)]
    pairs += [pictured("t7", data_url(large), "https://example.org/a.png")]
    import_pairs(project, pairs)
    folder = data_folder(freeze(project))
    archive = PictureArchive(folder / PICTURES)
    digests = [picture_bytes(data_url(data)).digest for data in (red, blue, large)]
    assert len(archive) == 3
    assert np.array_equal(archive.read(digests[0]), np.asarray(coloured(RED)))
    assert archive.read(digests[2]).shape == (432, 768, 3)


def test_without_pictures_there_is_no_archive(judged: Project) -> None:
    assert sorted(path.name for path in data_folder(freeze(judged)).iterdir()) == [
        "test.jsonl.zst",
        "train.jsonl.zst",
        "validation.jsonl.zst",
    ]


def test_a_picture_whose_file_is_gone_is_left_out(project: Project) -> None:
    red, blue = (file_of(coloured(colour)) for colour in (RED, BLUE))
    import_pairs(project, [pictured(f"t{n}", data_url(red), data_url(blue)) for n in range(6)])
    digest = picture_bytes(data_url(red)).digest
    assert digest in attachments_by_digest(project, [digest])
    artifacts.delete_file(file_name(project.pk, digest))
    archive = PictureArchive(data_folder(freeze(project)) / PICTURES)
    assert len(archive) == 1
    assert digest not in archive
