"""What an endpoint serves: weighted components and an ordered list of transforms, as plain values.

{"components": [{"name": "main", "type": "reward_model", "model": "project/name@3", "weight": 1.0}],
 "transforms": [{"type": "normalise"}, {"type": "clip", "eta": 0.5}]}
"""

from dataclasses import dataclass
from typing import Any

from workers.errors import InvalidRecord
from workers.schema.decode import finite, require_list, require_object

COMPONENT_TYPES = ("reward_model",)


@dataclass(frozen=True, slots=True)
class Component:
    """One source of reward. name: its key in the reply's `components`. model: `project/name@version`."""

    name: str
    model: str
    weight: float = 1.0
    type: str = "reward_model"


@dataclass(frozen=True, slots=True)
class Normalise:
    """(raw - median) / std over the distinct training trajectories. Always the first transform. Unbounded."""

    type: str = "normalise"


@dataclass(frozen=True, slots=True)
class Clip:
    """min(reward - eta, 0): in (-inf, 0]. Nothing is gained beyond eta (arXiv 2410.15115)."""

    eta: float = 0.0
    type: str = "clip"


@dataclass(frozen=True, slots=True)
class Squash:
    """scale * tanh(reward / scale): in [-scale, scale], order kept, slope 1 at zero."""

    scale: float = 3.0
    type: str = "squash"


Transform = Normalise | Clip | Squash


@dataclass(frozen=True, slots=True)
class EndpointSpec:
    components: tuple[Component, ...]
    transforms: tuple[Transform, ...] = (Normalise(),)

    @property
    def models(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(component.model for component in self.components))

    def to_builtins(self) -> dict[str, Any]:
        return {
            "components": [
                {"name": one.name, "type": one.type, "model": one.model, "weight": one.weight}
                for one in self.components
            ],
            "transforms": [_transform_out(one) for one in self.transforms],
        }


def parse_spec(value: Any, *, pointer: str = "") -> EndpointSpec:
    """The spec of a decoded JSON object; `normalise` first where it is not said. Raises InvalidRecord."""
    value = require_object(value, pointer=pointer)
    _known(value, ("components", "transforms"), pointer)
    return EndpointSpec(
        components=_components(value.get("components"), f"{pointer}/components"),
        transforms=parse_transforms(value.get("transforms", []), pointer=f"{pointer}/transforms"),
    )


def parse_transforms(value: Any, *, pointer: str = "") -> tuple[Transform, ...]:
    """The transforms of a decoded JSON array, in order, `normalise` first. Raises InvalidRecord."""
    transforms = [
        _transform(raw, f"{pointer}/{index}")
        for index, raw in enumerate(require_list(value, pointer=pointer))
    ]
    for index, one in enumerate(transforms):
        if isinstance(one, Normalise) and index:
            raise InvalidRecord(
                "normalise comes first, once: it makes the reward scale.", pointer=f"{pointer}/{index}"
            )
    return tuple(
        transforms if transforms and isinstance(transforms[0], Normalise) else [Normalise(), *transforms]
    )


def _components(value: Any, at: str) -> tuple[Component, ...]:
    components = [
        _component(raw, f"{at}/{index}") for index, raw in enumerate(require_list(value, pointer=at))
    ]
    if not components:
        raise InvalidRecord("an endpoint needs at least one component.", pointer=at)
    for index, one in enumerate(components):
        if one.name in {other.name for other in components[:index]}:
            raise InvalidRecord(f"two components are named {one.name!r}.", pointer=f"{at}/{index}/name")
    return tuple(components)


def _component(raw: Any, at: str) -> Component:
    raw = require_object(raw, pointer=at)
    _known(raw, ("name", "type", "model", "weight"), at)
    kind = raw.get("type", "reward_model")
    if kind not in COMPONENT_TYPES:
        known = ", ".join(COMPONENT_TYPES)
        raise InvalidRecord(f"unknown component type {kind!r}; known are {known}.", pointer=f"{at}/type")
    for key in ("name", "model"):
        if not isinstance(raw.get(key), str) or not raw[key]:
            raise InvalidRecord(f"a component needs its {key} as text.", pointer=f"{at}/{key}")
    weight = finite(raw.get("weight", 1.0), pointer=f"{at}/weight")
    if weight is None or weight == 0:
        raise InvalidRecord(
            "weight is a number other than 0; leave the component out instead.", pointer=f"{at}/weight"
        )
    return Component(name=raw["name"], model=raw["model"], weight=weight)


def _transform(raw: Any, at: str) -> Transform:
    raw = require_object(raw, pointer=at)
    kind = raw.get("type")
    if kind == "normalise":
        _known(raw, ("type",), at)
        return Normalise()
    if kind == "clip":
        _known(raw, ("type", "eta"), at)
        return Clip(_number(raw, "eta", Clip().eta, at))
    if kind == "squash":
        _known(raw, ("type", "scale"), at)
        scale = _number(raw, "scale", Squash().scale, at)
        if scale <= 0:
            raise InvalidRecord("scale is a number above 0.", pointer=f"{at}/scale")
        return Squash(scale)
    raise InvalidRecord(
        f"unknown transform {kind!r}; known are normalise, clip, squash.", pointer=f"{at}/type"
    )


def _transform_out(transform: Transform) -> dict[str, Any]:
    if isinstance(transform, Clip):
        return {"type": "clip", "eta": transform.eta}
    if isinstance(transform, Squash):
        return {"type": "squash", "scale": transform.scale}
    return {"type": "normalise"}


def _number(raw: dict[str, Any], key: str, default: float, at: str) -> float:
    number = finite(raw.get(key, default), pointer=f"{at}/{key}")
    if number is None:
        raise InvalidRecord("expected a number, got null.", pointer=f"{at}/{key}")
    return number


def _known(raw: dict[str, Any], keys: tuple[str, ...], at: str) -> None:
    unknown = next((key for key in raw if key not in keys), None)
    if unknown is not None:
        raise InvalidRecord(
            f"unknown key {unknown!r}; known are {', '.join(keys)}.", pointer=f"{at}/{unknown}"
        )
