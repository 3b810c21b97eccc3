"""Which server and key are used: of the environment, of a profile, and never one's key for another's server."""

import json
import stat
from pathlib import Path

import pytest
from touchstone_client.cli import profiles
from touchstone_client.cli.connection import checked_key, checked_url, find_connection, is_unencrypted
from touchstone_client.cli.profiles import Profile, read_profiles, save_profile
from touchstone_client.cli.statuses import UsageFailed

from tests.client.cli.conftest import Touchstone

WORK = Profile("https://work.example", "desk", "tsk_work_secret")


def test_a_profile_is_kept_for_its_user_alone(settings_folder: Path) -> None:
    save_profile("default", WORK)
    save_profile("home", Profile("http://localhost:8000", "sample", "tsk_home"))
    file = settings_folder / "credentials.json"
    assert (
        stat.S_IMODE(file.stat().st_mode) == 0o600 and stat.S_IMODE(settings_folder.stat().st_mode) == 0o700
    )
    assert read_profiles()["default"] == WORK and [path.name for path in settings_folder.iterdir()] == [
        file.name
    ]
    assert "secret" not in repr(WORK) + repr(find_connection())


def test_the_environment_comes_before_the_profile(
    settings_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_profile("default", WORK)
    monkeypatch.setenv("TOUCHSTONE_PROJECT", "other")
    assert find_connection().project == "other" and find_connection(None, "third").project == "third"
    monkeypatch.setenv("TOUCHSTONE_API_KEY", "tsk_env")
    monkeypatch.setenv("TOUCHSTONE_URL", "https://else.example/")
    found = find_connection()
    assert (found.url, found.key, found.profile) == ("https://else.example", "tsk_env", None)


def test_a_stored_key_is_not_sent_to_another_server(
    settings_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_profile("default", WORK)
    monkeypatch.setenv("TOUCHSTONE_URL", "https://else.example")
    with pytest.raises(UsageFailed, match="the key of the profile 'default' is for https://work") as error:
        find_connection()
    assert "secret" not in str(error.value)


def test_profiles_by_name(settings_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_profile("home", WORK)
    assert find_connection("home").profile == "home"
    monkeypatch.setenv("TOUCHSTONE_PROFILE", "home")
    assert find_connection().url == WORK.url
    with pytest.raises(
        UsageFailed, match="There is no profile 'work'; run `touchstone login --profile work`"
    ):
        find_connection("work")


@pytest.mark.parametrize(
    "content", ["", "[]", '{"profiles": {"default": {"url": 1}}}', '{"profiles": 3}', "\x00"]
)
def test_a_file_that_is_no_list_of_profiles(settings_folder: Path, content: str) -> None:
    settings_folder.mkdir(parents=True)
    (settings_folder / "credentials.json").write_text(content)
    with pytest.raises(UsageFailed, match="is not a list of profiles"):
        read_profiles()


def test_a_file_that_others_can_read_is_reported(touchstone: Touchstone, settings_folder: Path) -> None:
    save_profile("default", Profile("http://127.0.0.1:9", "desk", "tsk_x"))
    (settings_folder / "credentials.json").chmod(0o644)
    assert "run: chmod 600" in touchstone("runs").err


def test_logout_removes_one_profile(touchstone: Touchstone, settings_folder: Path) -> None:
    save_profile("default", WORK)
    save_profile("home", WORK)
    found = touchstone("logout", "--json")
    assert found.json == {"profile": "default", "url": WORK.url, "project": "desk"}
    assert list(read_profiles()) == ["home"] and "secret" not in found.out + found.err
    assert touchstone("logout").status == 2


@pytest.mark.parametrize(
    "text",
    [
        "localhost:8000",
        "work.example",
        "ftp://work.example",
        "https://",
        "https://u:p@x.example",
        "https://x.example?a=1",
        "",
    ],
)
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(UsageFailed):
        checked_url(text, "URL")


def test_addresses_and_keys_are_read_leniently_where_that_is_safe() -> None:
    assert checked_url(" https://work.example/touchstone/ ", "URL") == "https://work.example/touchstone"
    assert checked_key(" tsk_a \n") == "tsk_a"
    for bad in ("", "a b", "ké", "a\nb"):
        with pytest.raises(UsageFailed, match="no API key has"):
            checked_key(bad)
    assert is_unencrypted("http://work.example") and not is_unencrypted("http://127.0.0.1:8000")


@pytest.mark.parametrize(
    ("platform", "variables", "folder"),
    [
        ("linux", {"XDG_CONFIG_HOME": "/x"}, "/x/touchstone"),
        ("linux", {"XDG_CONFIG_HOME": "relative"}, "/home/rose/.config/touchstone"),
        ("darwin", {}, "/home/rose/Library/Application Support/touchstone"),
        ("win32", {"APPDATA": "/data"}, "/data/touchstone"),
    ],
)
def test_the_folder_of_each_system(
    monkeypatch: pytest.MonkeyPatch, platform: str, variables: dict[str, str], folder: str
) -> None:
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("HOME", "/home/rose")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(profiles.sys, "platform", platform)
    assert profiles.settings_folder() == Path(folder)


def test_the_file_is_json_that_others_can_script(settings_folder: Path) -> None:
    save_profile("default", WORK)
    content = json.loads((settings_folder / "credentials.json").read_text())
    assert content == {"profiles": {"default": {"url": WORK.url, "project": "desk", "key": WORK.key}}}
