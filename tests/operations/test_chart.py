"""The Helm chart and the files for proxies: what can be known of them without Helm, a cluster or a proxy."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from django.core.management import get_commands

ROOT = Path(__file__).parents[2]
OPERATIONS = ROOT / "docs" / "operations"
CHART = OPERATIONS / "helm" / "touchstone"
TEMPLATES = "".join(path.read_text() for path in sorted((CHART / "templates").iterdir()))
VALUES = yaml.safe_load((CHART / "values.yaml").read_text())
SETTINGS = (ROOT / "docs/settings.md").read_text()


def _paths(values: dict[str, Any], before: str = "") -> Iterator[str]:
    for name, value in values.items():
        yield before + name
        if isinstance(value, dict):
            yield from _paths(value, f"{before}{name}.")


def test_every_value_that_templates_read_is_there() -> None:
    read = set(re.findall(r"\$?\.Values\.([a-zA-Z]+(?:\.[a-zA-Z]+)*)", TEMPLATES))
    read |= set(re.findall(r"\$values\.([a-zA-Z]+(?:\.[a-zA-Z]+)*)", TEMPLATES))
    assert read and read - set(_paths(VALUES)) == set()


def test_every_value_is_read() -> None:
    read = " ".join(re.findall(r"[.$]\w+(?:\.\w+)+|\.\w+", TEMPLATES))
    leaves = [
        path.rpartition(".")[2] for path in _paths(VALUES) if not path.startswith("ingress.annotations.")
    ]
    inner = {"requests", "limits", "cpu", "memory"}  # of resources, which are copied as they are
    assert [leaf for leaf in leaves if leaf not in inner and f".{leaf}" not in read] == []


def test_it_sets_settings_there_are_and_runs_commands_there_are() -> None:
    named = {name.removesuffix("_FILE") for name in re.findall(r"\b[A-Z]+(?:_[A-Z0-9]+)+\b", TEMPLATES)}
    assert {"TOUCHSTONE_PUBLIC_URL", "DATABASE_URL", "CELERY_BROKER_URL"} <= named
    assert [name for name in named if f"`{name}`" not in SETTINGS] == []
    commands = re.findall(r'"args" \(list "(\w+)"', TEMPLATES)
    assert {"web", "rewards", "worker", "beat", "migrate"} == set(commands) <= set(get_commands())


def test_it_is_of_this_version() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert chart["version"] == chart["appVersion"] == project["version"]


def test_proxies_give_trainers_time_and_buffer_nothing() -> None:
    nginx, caddy = (OPERATIONS / "nginx.conf").read_text(), (OPERATIONS / "Caddyfile").read_text()
    for line in ("proxy_request_buffering off;", "proxy_buffering off;", "proxy_read_timeout 600s;"):
        assert line in nginx
    assert "client_max_body_size 2g;" in nginx and "| `TOUCHSTONE_MAX_UPLOAD_MB` | 2048 |" in SETTINGS
    assert "flush_interval -1" in caddy and "response_header_timeout 600s" in caddy
    for header in ("Host", "X-Forwarded-For", "X-Forwarded-Proto"):
        assert f"proxy_set_header {header} " in nginx  # Caddy sends them unasked


def test_the_gpu_file_adds_to_services_there_are() -> None:
    base, more = (
        yaml.safe_load((OPERATIONS / name).read_text()) for name in ("compose.yaml", "compose.gpu.yaml")
    )
    assert more["services"].keys() <= base["services"].keys()
    for service in more["services"].values():
        (device,) = service["deploy"]["resources"]["reservations"]["devices"]
        assert device["capabilities"] == ["gpu"]
        assert [name for name in service["environment"] if f"`{name}`" not in SETTINGS] == []
