"""A policy's chat template is named by its family, or by a folder that the operator listed, and never by a path."""

from pathlib import Path
from typing import Any

import pytest

from apps.core.errors import DomainError
from apps.rewards.serving.deployments import _with_template_folder
from apps.rewards.specs import _check_policy_template
from workers.schema.endpoints import parse_spec


def spec(name: str) -> dict[str, Any]:
    return {"components": [{"name": "m", "model": "politeness@1"}], "policy_template": name}


@pytest.mark.parametrize("name", ["/etc", "../weights", "unheard-of", "/"])
def test_a_path_is_refused_whether_it_is_there_or_not(settings: Any, name: str) -> None:
    settings.MODEL_DIRS = {"policy": "/models/policy"}
    with pytest.raises(
        DomainError, match=r"neither a known chat template .*TOUCHSTONE_MODEL_DIRS lists policy"
    ):
        _check_policy_template(name)
    with pytest.raises(DomainError, match="is not the name of a model folder"):
        _with_template_folder(parse_spec(spec(name)))


def test_a_family_and_a_listed_folder_are_taken(settings: Any, tmp_path: Path) -> None:
    settings.MODEL_DIRS = {"policy": str(tmp_path)}
    for name in (None, "qwen3", "policy"):
        _check_policy_template(name)
    assert _with_template_folder(parse_spec(spec("policy"))).policy_template == str(tmp_path.resolve())
    assert _with_template_folder(parse_spec(spec("qwen3"))).policy_template == "qwen3"
