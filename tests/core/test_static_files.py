"""Static files have a name for each version, and browsers ask for each version once."""

import gzip
import re
from pathlib import Path

import pytest
from django.templatetags.static import static
from starlette.testclient import TestClient

from apps.core.http.static_files import FOREVER, HashedStaticFiles, StaticFileIndex, static_file_index

_TAG = re.compile(r"\{% static ['\"]([^'\"]+)['\"] %\}")
TEMPLATES = Path(__file__).parents[2] / "templates"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "js").mkdir()
    (tmp_path / "js" / "a.js").write_text('import { b } from "./b.js";\nconst c = () => import("../c.js");\n')
    (tmp_path / "js" / "b.js").write_text("export const b = 1;\n")
    (tmp_path / "c.js").write_text(f"export default 1; // {'x' * 2000}\n")
    (tmp_path / "a.css").write_text('@font-face { src: url("f.woff2") } p { background: url(data:x) }')
    (tmp_path / "f.woff2").write_bytes(b"font")
    return tmp_path


def test_what_a_file_uses_has_its_hashed_name(folder: Path) -> None:
    index = StaticFileIndex(folder)
    a, b, c = (index.files()[name] for name in ("js/a.js", "js/b.js", "c.js"))
    assert a.content.decode() == (
        f'import {{ b }} from "./{Path(b.hashed_name).name}";\n'
        f'const c = () => import("../{c.hashed_name}");\n'
    )
    font = index.hashed_name("f.woff2")
    assert f'url("{font}")' in index.files()["a.css"].content.decode()
    assert "url(data:x)" in index.files()["a.css"].content.decode()


def test_a_changed_import_changes_the_names_of_those_that_use_it(folder: Path) -> None:
    before = StaticFileIndex(folder)
    names = {name: file.hashed_name for name, file in before.files().items()}
    (folder / "js" / "b.js").write_text("export const b = 2;\n")
    after = StaticFileIndex(folder).files()
    changed = {name for name, file in after.items() if file.hashed_name != names[name]}
    assert changed == {"js/a.js", "js/b.js"}


def test_a_file_that_changes_while_the_server_runs_is_read_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apps.core.http.static_files._SECONDS_BETWEEN_LOOKS", 0.0)
    index = StaticFileIndex(folder)
    before = index.hashed_name("js/b.js")
    (folder / "js" / "b.js").write_text("export const b = 'longer';\n")
    assert index.hashed_name("js/b.js") != before


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("js/b.js", 'import "./none.js";', r"js/b\.js uses './none\.js', which is not there"),
        ("js/b.js", 'import "./a.js";', r"import each other.*js/a\.js > js/b\.js > js/a\.js"),
    ],
)
def test_a_mistake_stops_the_start(folder: Path, name: str, text: str, message: str) -> None:
    (folder / name).write_text(text)
    with pytest.raises(ValueError, match=message):
        HashedStaticFiles(StaticFileIndex(folder))


def test_how_they_are_served(folder: Path) -> None:
    index = StaticFileIndex(folder)
    client = TestClient(HashedStaticFiles(index))
    address = index.hashed_name("c.js")
    plain = client.get(f"/{address}", headers={"Accept-Encoding": "identity"})
    assert plain.headers["Cache-Control"] == FOREVER and "max-age=31536000" in FOREVER
    assert plain.headers["Content-Type"] == "text/javascript; charset=utf-8"
    assert "Content-Encoding" not in plain.headers and plain.headers["Vary"] == "Accept-Encoding"
    with client.stream("GET", f"/{address}", headers={"Accept-Encoding": "br, gzip"}) as answer:
        packed = b"".join(answer.iter_raw())
    assert answer.headers["Content-Encoding"] == "gzip" and gzip.decompress(packed) == plain.content
    assert int(answer.headers["Content-Length"]) == len(packed) < len(plain.content)
    refused = client.get(f"/{address}", headers={"Accept-Encoding": "gzip;q=0"})
    assert "Content-Encoding" not in refused.headers

    by_name = client.get("/c.js")
    assert by_name.headers["Cache-Control"] == "no-cache" and by_name.content == plain.content
    again = client.get("/c.js", headers={"If-None-Match": by_name.headers["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    earlier = client.get("/c.0123456789ab.js")  # a page from before an update
    assert earlier.status_code == 200 and earlier.headers["Cache-Control"] == "no-cache"
    assert client.head(f"/{address}").status_code == 200
    assert client.post(f"/{address}").status_code == 405
    for missing in ("/none.js", "/none.0123456789ab.js", "/js", "/../manage.py", "/%2e%2e/manage.py"):
        assert client.get(missing).status_code == 404, missing


def test_files_are_compressed_once(folder: Path) -> None:
    file = StaticFileIndex(folder).files()["c.js"]
    assert file.compressed is file.compressed is not None
    assert StaticFileIndex(folder).files()["js/b.js"].compressed is None  # too small


def test_every_file_that_a_template_names_is_there() -> None:
    names = {name for path in TEMPLATES.rglob("*.html") for name in _TAG.findall(path.read_text())}
    assert len(names) > 15
    for name in names:
        assert re.fullmatch(
            rf"/static/{re.escape(Path(name).with_suffix('').as_posix())}\.[0-9a-f]{{12}}\..+", static(name)
        )
    with pytest.raises(ValueError, match=r"There is no static file 'js/none\.js'"):
        static("js/none.js")


def test_relative_imports_of_scripts_are_all_hashed() -> None:
    """A specifier that the pattern misses would load a file a second time, under its plain name."""
    relative = re.compile(rb"""["'](\.{1,2}/[^"'\s]+\.js)["']""")
    for name, file in static_file_index().files().items():
        if name.startswith("js/"):
            for target in relative.findall(file.content):
                assert re.search(rb"\.[0-9a-f]{12}\.js$", target), (name, target)
