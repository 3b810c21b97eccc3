"""The component of an endpoint that checks tool calls against rules of a policy."""

from typing import Annotated, ClassVar

import msgspec

from workers.errors import InvalidRecord
from workers.schema.part_base import ComponentPart
from workers.schema.policy_checks import MAX_CHECKS, PolicyCheck, require_checks


class PolicyChecks(ComponentPart, frozen=True, kw_only=True, tag="policy_checks"):
    """Minus the share of checks of tool calls that a run breaks: -1 to 0, each paid at the step that first breaks it.

    checks: [{"name", "tools", one of forbid, argument, previous_call, confirmation, most_calls, most_per_step and
    alone}], as docs/policy-documents.md describes them.
    """

    title: ClassVar[str] = "Policy checks"
    checks: Annotated[tuple[PolicyCheck, ...], msgspec.Meta(min_length=1, max_length=MAX_CHECKS)]

    def require_sense(self) -> None:
        try:
            require_checks(self.checks)
        except InvalidRecord as error:
            raise error.at("/checks") from None
