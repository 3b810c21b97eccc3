"""What libraries call by `requests` is bounded as every other call is."""

import pytest
import requests

from apps.accounts.sign_on import Adapter
from apps.core.http.bounded_session import BoundedSession
from tests.core import hostile_server
from tests.core.hostile_server import ANSWERS, SLOW, whole


@pytest.mark.parametrize("what", ANSWERS)
def test_a_hostile_answer_is_an_error_of_requests(what: str) -> None:
    with hostile_server.serving(ANSWERS[what]) as url, pytest.raises(requests.RequestException):
        BoundedSession(5.0).get(url)


@pytest.mark.parametrize("what", SLOW)
def test_a_slow_answer_has_an_end(what: str) -> None:
    with (
        hostile_server.serving(SLOW[what]) as url,
        pytest.raises(requests.RequestException, match="took over"),
    ):
        BoundedSession(0.5).post(url, data={"code": "1"})


def test_a_redirect_is_an_error() -> None:
    moved = whole(b"", b"Location: http://169.254.169.254/", status=b"302 Found")
    with hostile_server.serving(moved) as url, pytest.raises(requests.TooManyRedirects):
        BoundedSession(5.0).get(url)


def test_a_good_answer_is_as_requests_gives_it() -> None:
    with hostile_server.serving(whole(b'{"a": "\xc3\xa9"}')) as url:
        reply = BoundedSession(5.0).get(url, params={"q": "1"})
        assert reply.ok and reply.json() == {"a": "é"} and reply.headers["content-type"] == "application/json"
        assert reply.url == f"{url}/?q=1"


def test_single_sign_on_asks_its_provider_by_one() -> None:
    assert isinstance(Adapter().get_requests_session(), BoundedSession)
