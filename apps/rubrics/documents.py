"""A rubric as YAML, in and out:

name: Support
about: What a customer may expect.
criteria:
  - name: polite
    definition: The agent stays courteous.
    scale: [1, 5]
    good: "I am sorry to hear that."
    bad: "As I said before."
    weight: 1.0
    rank: 1
"""

from typing import Any

import yaml

from apps.core.errors import DomainError
from apps.rubrics.models import Rubric
from apps.rubrics.services import CriterionDraft, draft_of

LARGEST = 1_000_000  # characters
KEYS = ("name", "about", "criteria")
OF_CRITERION = ("name", "definition", "scale", "good", "bad", "weight", "rank")


def write(rubric: Rubric) -> str:
    """The same text for the same rubric; what is empty is left out."""
    criteria = []
    for entry in rubric.entries.select_related("criterion"):
        one = draft_of(entry)
        said = {
            "name": one.name, "definition": one.definition, "scale": [one.scale_low, one.scale_high],
            "good": one.good_example, "bad": one.bad_example, "weight": one.weight, "rank": one.rank,
        }  # fmt: skip
        criteria.append({key: plain(value) for key, value in said.items() if value != ""})
    document = {"name": rubric.name, "about": rubric.about, "criteria": criteria}
    kept = {key: value for key, value in document.items() if value != ""}
    return yaml.safe_dump(kept, sort_keys=False, allow_unicode=True, width=100)


def read(text: str) -> tuple[str, str, list[CriterionDraft]]:
    """(name, about, criteria). Raises DomainError that says where the document is wrong."""
    if len(text) > LARGEST:
        raise DomainError(f"A rubric has at most {LARGEST} characters; this text has {len(text)}.")
    try:
        # No aliases: a few lines of them can stand for gigabytes.
        if any(isinstance(token, yaml.AliasToken) for token in yaml.scan(text, yaml.SafeLoader)):
            raise DomainError("A rubric has no aliases (*name); write it out.")
        document = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise DomainError(f"This is no YAML: {error}") from None
    except RecursionError:
        raise DomainError("This YAML is nested too deeply to be read.") from None
    if not isinstance(document, dict):
        raise DomainError(f"A rubric has {', '.join(KEYS)}; this is {type(document).__name__}.")
    _known(document, KEYS, "")
    criteria = document.get("criteria")
    if not isinstance(criteria, list):
        raise DomainError("criteria is a list, each with a name.", pointer="/criteria")
    drafts = [_criterion(one, f"/criteria/{place}") for place, one in enumerate(criteria)]
    return _text(document, "name", ""), _text(document, "about", ""), drafts


def _criterion(said: Any, at: str) -> CriterionDraft:
    if not isinstance(said, dict):
        raise DomainError(f"A criterion has {', '.join(OF_CRITERION)}.", pointer=at)
    _known(said, OF_CRITERION, at)
    scale = said.get("scale", [1, 5])
    if not (isinstance(scale, list) and len(scale) == 2 and all(map(_is_number, scale))):
        raise DomainError("scale is [lowest, highest], two numbers.", pointer=f"{at}/scale")
    weight, rank = said.get("weight", 1.0), said.get("rank", 1)
    if not _is_number(weight):
        raise DomainError("weight is a number.", pointer=f"{at}/weight")
    if not isinstance(rank, int) or isinstance(rank, bool):
        raise DomainError("rank is a whole number; 1 matters most.", pointer=f"{at}/rank")
    return CriterionDraft(
        name=_text(said, "name", at),
        definition=_text(said, "definition", at),
        scale_low=float(scale[0]),
        scale_high=float(scale[1]),
        good_example=_text(said, "good", at),
        bad_example=_text(said, "bad", at),
        weight=float(weight),
        rank=rank,
    )


def _known(said: dict[Any, Any], known: tuple[str, ...], at: str) -> None:
    unknown = next((key for key in said if key not in known), None)
    if unknown is not None:
        raise DomainError(
            f"Unknown key {unknown!r}; known are {', '.join(known)}.", pointer=f"{at}/{unknown}"
        )


def _text(said: dict[Any, Any], key: str, at: str) -> str:
    value = said.get(key, "")
    if not isinstance(value, str):
        raise DomainError(f"{key} is text; {value!r} is not (put it in quotes).", pointer=f"{at}/{key}")
    return value.strip()


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value == value  # no NaN


def plain(value: Any) -> Any:
    """Numbers without a fraction as they are written by people."""
    if isinstance(value, list):
        return [plain(one) for one in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
