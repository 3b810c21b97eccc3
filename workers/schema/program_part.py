"""A component that is a program: code in a subset of Python, which runs in a sandbox."""

import hashlib
from typing import Annotated, ClassVar

import msgspec

from workers.errors import InvalidRecord
from workers.schema.part_base import ComponentPart, Name

ProgramBound = Annotated[float, msgspec.Meta(ge=-1_000_000, le=1_000_000)]


class PythonProgram(ComponentPart, frozen=True, kw_only=True, tag="python"):
    """A number that your own code computes, in a sandbox (Text2Reward, arXiv 2309.11489). The code defines
    `def reward(trajectory):`, a number, and, if steps earn at different times, `def step_rewards(trajectory):`, a list
    with a number for each agent step.

    program: a version, as `name@version`, of which a dry run has passed. low, high: what the reward is
    limited to, and also what the steps have added up to after each one. seconds: for one input. otherwise: the number
    where the code fails; else that is an error. code: only to try it; to deploy it, store it as a program.
    """

    title: ClassVar[str] = "Reward program (Python)"
    reads_reference: ClassVar[bool] = True

    program: Name | None = None
    low: ProgramBound
    high: ProgramBound
    seconds: Annotated[float, msgspec.Meta(ge=0.01, le=10)] = 1.0
    otherwise: ProgramBound | None = None
    code: Annotated[str, msgspec.Meta(max_length=50_000)] | None = None
    code_hash: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")] | None = None

    def require_sense(self) -> None:
        if self.low >= self.high:
            raise InvalidRecord("must be below `high`.", pointer="/low")
        if self.otherwise is not None and not self.low <= self.otherwise <= self.high:
            raise InvalidRecord(f"must be from {self.low:g} to {self.high:g}.", pointer="/otherwise")
        if self.code is None and self.program is None:
            raise InvalidRecord("name a program: `name@version`.", pointer="/program")
        if self.code is not None and self.code_hash not in (None, hash_of_code(self.code)):
            raise InvalidRecord("is not the SHA-256 of `code`; leave it out.", pointer="/code_hash")


def hash_of_code(code: str) -> str:
    return hashlib.sha256(code.encode("utf-8", "surrogatepass")).hexdigest()
