"""Components that compare what an agent did with what the item's `reference` says is right."""

from typing import Annotated, ClassVar, Literal

import msgspec

from workers.errors import InvalidRecord
from workers.schema.part_base import ComponentPart, PartWeight, Share

Tolerance = Annotated[float, msgspec.Meta(ge=0, le=1_000_000_000)]


class AnswerMatch(ComponentPart, frozen=True, kw_only=True, tag="answer_match"):
    """Whether the last agent message gives the answer of the item's `reference`: 0 to 1, at the last step. Of a list of
    right answers, the best one counts.

    extract: the part that is the answer: all of the `message`, the last `boxed` LaTeX, the last `tag`, what follows the
    last `hashes` (####, as GSM8K), or the last `number`. Without it the value is 0. compare: `exact` and `f1` as SQuAD
    (arXiv 1606.05250: lower case, no punctuation, no articles; but numbers keep sign and point: -3 is not 3), `numeric`
    within a tolerance, `set` (F1 of the members between commas), `math` (LaTeX as in MATH, arXiv 2103.03874). tag: of
    extract `tag`, its name. absolute, relative: the tolerance of numbers.
    """

    title: ClassVar[str] = "Answer as in the reference"
    reads_reference: ClassVar[bool] = True
    compare: Literal["exact", "f1", "numeric", "set", "math"] = "exact"
    extract: Literal["message", "boxed", "tag", "hashes", "number"] = "message"
    tag: Annotated[str, msgspec.Meta(pattern="^[A-Za-z][A-Za-z0-9_-]{0,49}$")] = "answer"
    absolute: Tolerance = 1e-6
    relative: Tolerance = 1e-6


class EntityMatch(ComponentPart, frozen=True, kw_only=True, tag="entity_match"):
    """The share of the reference's `entities` that the agent said or saw: 0 to 1, earned where one first appears
    (E-GRPO: Repurposing Synthetic Data for Fine-grained Search Agent Supervision).

    within: what the agent `said`, what it has `seen` in observations, or `both`. near_miss: with a right `answer` in
    the reference, the value is 1 where the last message contains it, else near_miss times the share.
    """

    title: ClassVar[str] = "Entities as in the reference"
    reads_reference: ClassVar[bool] = True
    within: Literal["said", "seen", "both"] = "both"
    near_miss: Share | None = None


class GuiAction(ComponentPart, frozen=True, kw_only=True, tag="gui_action"):
    """How well the action on a screen matches that of the reference: 0 to 1, the weighted mean of the terms that apply
    (UI-R1, arXiv 2503.21620; GUI-G1, arXiv 2505.15810; UI-Venus).

    The reference: {"action", "box", "text", "screen": [width, height]}, or a list with one for each agent step. Terms:
    the action's type; whether the point, or the middle of the box, is in the right box; IoU with it; its size (smaller
    area / larger area); the text that is typed. coordinates, reference_coordinates: pixels, 0 to 1 (`unit`) or 0 to
    1000 (`thousand`), of the agent and of the reference; where they differ, pixels need the screen's size.
    """

    title: ClassVar[str] = "Action on a screen"
    reads_reference: ClassVar[bool] = True
    coordinates: Literal["pixels", "unit", "thousand"] = "pixels"
    reference_coordinates: Literal["pixels", "unit", "thousand"] = "pixels"
    action_weight: PartWeight = 1.0
    point_weight: PartWeight = 1.0
    box_weight: PartWeight = 1.0
    size_weight: PartWeight = 0.0
    text_weight: PartWeight = 1.0

    def require_sense(self) -> None:
        if not (self.action_weight and self.point_weight):
            raise InvalidRecord(
                "action_weight and point_weight must be above 0: an action or a place alone has no other term.",
                pointer="/point_weight" if self.action_weight else "/action_weight",
            )


class Subgoals(ComponentPart, frozen=True, kw_only=True, tag="subgoals"):
    """The share of the task's subgoals that are reached, by weight: 0 to 1, earned where each is first reached
    (Words as Beacons: Guiding RL Agents with High-Level Language Prompts).

    They come with the item: `subgoals` in the reference, or in its `metadata` or its task's: texts to be found, or
    {"expression": RE2, "weight": 1}. On the page Subgoals, a language model proposes them. within: what the agent
    `said`, what it has `seen` in observations, or `both`. in_order: a subgoal only counts after those before it.
    """

    title: ClassVar[str] = "Subgoals of the task"
    reads_reference: ClassVar[bool] = True
    within: Literal["said", "seen", "both"] = "both"
    in_order: bool = False


class KeyNodeShare(ComponentPart, frozen=True, kw_only=True, tag="key_nodes"):
    """The share of the task's key nodes that a run reaches: 0 to 1, each earned at the step that first reaches it
    (WebCanvas, arXiv 2406.12373: step score).

    They come with the item: `key_nodes` in the reference, or in its `metadata` or its task's, as people mark them on
    the page of a trajectory: {"nodes": [{"name", "tools", "when", "url", "text"}], "in_order": false}.
    """

    title: ClassVar[str] = "Key nodes of the task"
    reads_reference: ClassVar[bool] = True


class EvidenceMatch(ComponentPart, frozen=True, kw_only=True, tag="evidence"):
    """The share of the passages that support the answer, by overlap: 0 to 1; 0 without a passage (evidence purity of
    Select Less, Reason More, with words in place of frames). Each step earns what its own passages add.

    A passage is one result of a tool. The answer is the `answer` of the reference; without a reference, the last agent
    message. A judge with `passages` reads them instead of comparing words. passages: all that were `retrieved`, or
    those that the last message has `cited` as [1], [2], in the order of retrieval. at_least: the share of the answer's
    words that a passage has to have to support it.
    """

    title: ClassVar[str] = "Evidence for the answer"
    reads_reference: ClassVar[bool] = True
    passages: Literal["retrieved", "cited"] = "retrieved"
    at_least: Share = 0.5
