"""What every component of an endpoint has: a name, a weight, the title of its card, and checks of one part alone."""

from typing import Annotated, ClassVar

import msgspec

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=100)]
Count = Annotated[int, msgspec.Meta(ge=0, le=10_000_000)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
PartWeight = Annotated[float, msgspec.Meta(ge=0, le=1_000_000)]
Expression = Annotated[str, msgspec.Meta(min_length=1, max_length=2000)]


class ComponentPart(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", forbid_unknown_fields=True):
    """What components have in common. name: its key in the reply's `components`.

    title: of its card on the page Compose. reads_reference: whether it compares with the item's `reference`.
    """

    title: ClassVar[str]
    reads_reference: ClassVar[bool] = False

    name: Name
    weight: float = 1.0

    def require_sense(self) -> None:
        """Raises InvalidRecord, with a pointer inside the part, for what the types of its fields do not rule out."""
