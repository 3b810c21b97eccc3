"""A rubric as YAML, in and out:

name: Support
about: What a customer may expect.
criteria:
  - name: polite
    definition: The agent stays courteous.
    scale: [1, 5]
    points: {1: Never polite, 5: Always polite}
    good: "I am sorry to hear that."
    bad: "As I said before."
    weight: 1.0
    rank: 1
  - name: failure
    answers: categories            # category (one), categories (several), step_tags (tags on agent steps)
    categories:
      wrong tool: A tool is called that cannot help.
      gave up:
"""

from collections.abc import Iterable
from typing import Any

import yaml

from apps.core.errors import DomainError
from apps.rubrics.models import Rubric
from apps.rubrics.services import CriterionDraft, draft_of

LARGEST = 1_000_000  # characters
KEYS = ("name", "about", "criteria")
OF_CRITERION = (
    *("name", "definition", "answers", "categories", "scale", "points"),
    *("good", "bad", "weight", "rank"),
)


def write(rubric: Rubric) -> str:
    """The same text for the same rubric; what is empty is left out."""
    criteria = []
    for entry in rubric.entries.select_related("criterion"):
        draft = draft_of(entry)
        values: dict[str, Any] = {"name": draft.name, "definition": draft.definition}
        if entry.criterion.has_scale:
            values["scale"] = [draft.scale_low, draft.scale_high]
            values["points"] = {_point(point): name for point, name in draft.point_names.items()}
        else:
            values["answers"] = draft.answer_type
            values["categories"] = {each["name"]: each["definition"] for each in draft.categories}
        values |= {
            "good": draft.good_example, "bad": draft.bad_example, "weight": draft.weight, "rank": draft.rank,
        }  # fmt: skip
        criteria.append({key: plain(value) for key, value in values.items() if value not in ("", {})})
    document = {"name": rubric.name, "about": rubric.about, "criteria": criteria}
    kept = {key: value for key, value in document.items() if value != ""}
    return yaml.safe_dump(kept, sort_keys=False, allow_unicode=True, width=100)


def read(text: str) -> tuple[str, str, list[CriterionDraft]]:
    """(name, about, criteria). Raises DomainError that says where the document is wrong."""
    if len(text) > LARGEST:
        raise DomainError(f"A rubric can have at most {LARGEST} characters; this text has {len(text)}.")
    try:
        # No aliases: a few lines of them can stand for gigabytes.
        if any(isinstance(token, yaml.AliasToken) for token in yaml.scan(text, yaml.SafeLoader)):
            raise DomainError("YAML aliases (*name) are not supported; write the values out.")
        document = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise DomainError(f"The text is not valid YAML: {error}") from None
    except RecursionError:
        raise DomainError("The YAML is nested too deeply.") from None
    if not isinstance(document, dict):
        raise DomainError(
            f"A rubric must be a mapping with {', '.join(KEYS)}, not {type(document).__name__}."
        )
    _known(document, KEYS, "")
    criteria = document.get("criteria")
    if not isinstance(criteria, list):
        raise DomainError("criteria must be a list of criteria, each with a name.", pointer="/criteria")
    drafts = [_criterion(criterion, f"/criteria/{place}") for place, criterion in enumerate(criteria)]
    return _text(document, "name", ""), _text(document, "about", ""), drafts


def _criterion(values: Any, at: str) -> CriterionDraft:
    if not isinstance(values, dict):
        raise DomainError(f"A criterion must be a mapping with {', '.join(OF_CRITERION)}.", pointer=at)
    _known(values, OF_CRITERION, at)
    if "scale" in values and values.get("answers", "scale") != "scale":
        raise DomainError("A criterion with categories has no scale; remove scale.", pointer=f"{at}/scale")
    scale = values.get("scale", [1, 5])
    if not (isinstance(scale, list) and len(scale) == 2 and all(map(_is_number, scale))):
        raise DomainError("scale must be [lowest, highest], two numbers.", pointer=f"{at}/scale")
    weight, rank = values.get("weight", 1.0), values.get("rank", 1)
    if not _is_number(weight):
        raise DomainError("weight must be a number.", pointer=f"{at}/weight")
    if not isinstance(rank, int) or isinstance(rank, bool):
        raise DomainError("rank must be a whole number; 1 is the most important.", pointer=f"{at}/rank")
    return CriterionDraft(
        name=_text(values, "name", at),
        definition=_text(values, "definition", at),
        answer_type=_text(values, "answers", at) or "scale",
        categories=_categories(values.get("categories", []), f"{at}/categories"),
        scale_low=float(scale[0]),
        scale_high=float(scale[1]),
        point_names=_point_names(values.get("points", {}), f"{at}/points"),
        good_example=_text(values, "good", at),
        bad_example=_text(values, "bad", at),
        weight=float(weight),
        rank=rank,
    )


def _categories(values: Any, at: str) -> list[dict[str, str]]:
    """A list of names, or a mapping of names to definitions."""
    pairs = dict.fromkeys(values, "") if isinstance(values, list) and _all_text(values) else values
    if not isinstance(pairs, dict) or not _all_text(pairs) or not _all_text(filter(None, pairs.values())):
        raise DomainError(
            "categories must be a list of names, or a mapping of names to definitions.", pointer=at
        )
    return [
        {"name": name.strip(), "definition": (definition or "").strip()} for name, definition in pairs.items()
    ]


def _all_text(values: Iterable[Any]) -> bool:
    return all(isinstance(value, str) for value in values)


def _point_names(values: Any, at: str) -> dict[str, str]:
    if not isinstance(values, dict):
        raise DomainError(
            "points must be a mapping from a score to its name, such as 1: Never asks.", pointer=at
        )
    for point, name in values.items():
        if not _is_number(point) or not isinstance(name, str):
            raise DomainError(f"points must map numbers to names, not {point!r} to {name!r}.", pointer=at)
    return {f"{point:g}": name.strip() for point, name in values.items()}


def _point(point: str) -> Any:
    return plain(float(point))


def _known(values: dict[Any, Any], known: tuple[str, ...], at: str) -> None:
    unknown = next((key for key in values if key not in known), None)
    if unknown is not None:
        raise DomainError(
            f"Unknown key {unknown!r}; allowed are {', '.join(known)}.", pointer=f"{at}/{unknown}"
        )


def _text(values: dict[Any, Any], key: str, at: str) -> str:
    value = values.get(key, "")
    if not isinstance(value, str):
        raise DomainError(f"{key} must be text, not {value!r}; put it in quotes.", pointer=f"{at}/{key}")
    return value.strip()


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value == value  # no NaN


def plain(value: Any) -> Any:
    """Numbers without a fraction as they are written by people."""
    if isinstance(value, list):
        return [plain(entry) for entry in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
