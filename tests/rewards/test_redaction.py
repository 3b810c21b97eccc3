"""`?key=` is taken out of whatever a server's access log would write."""

import logging

from apps.rewards.serving.context import RedactKeys


def test_keys_are_redacted() -> None:
    path = "/compat/openrlhf/sample/get_reward?a=1&key=ts_secret&b=2"
    args = ("127.0.0.1", "POST", path, "1.1", 200)
    record = logging.LogRecord("uvicorn.access", logging.INFO, "", 0, '%s - "%s %s HTTP/%s" %d', args, None)
    assert RedactKeys().filter(record)
    assert "ts_secret" not in record.getMessage()
    assert "?a=1&key=[redacted]&b=2" in record.getMessage()
