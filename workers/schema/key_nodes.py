"""Key nodes of a task: what a trajectory must reach on the way (WebCanvas, arXiv 2406.12373), and what should be seen
there. Patterns are data: tests of tool calls as policy checks have them, and RE2. Nothing is run."""

from typing import Annotated, Any, Literal

import msgspec

from workers.errors import InvalidRecord
from workers.schema.decode import convert
from workers.schema.policy_checks import (
    CheckName,
    ToolName,
    ValueTest,
    given_values,
    names_tool,
    require_expression,
    require_test,
)

MOST_KEY_NODES = 100
MOST_TASK_CHARACTERS = 500_000  # of the nodes of one task, as JSON
LONGEST_EXPECTED = 20_000
_Expression = Annotated[str, msgspec.Meta(min_length=1, max_length=2000)]


class KeyNode(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One node; at least one of tools, url and text, and all that are given hold in the same agent step with what was
    observed after it.

    tools, when: a call of one of these tools whose arguments pass the tests, as in a policy check. url: RE2, found in
    an address that the step opens, or is at. text: RE2, found in what the agent `said`, what it has `seen` in
    observations, or `both`. expected: the observation that this step should give; it is compared, and does not decide
    whether the node is reached.
    """

    name: CheckName
    tools: Annotated[list[ToolName], msgspec.Meta(max_length=50)] = []
    when: Annotated[list[ValueTest], msgspec.Meta(max_length=20)] = []
    url: _Expression | None = None
    text: _Expression | None = None
    within: Literal["said", "seen", "both"] = "seen"
    expected: Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST_EXPECTED)] | None = None

    def concerns_tool(self, name: str) -> bool:
        return any(names_tool(each, name) for each in self.tools)


class KeyNodes(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Of a task. in_order: a node only counts after those before it."""

    nodes: Annotated[list[KeyNode], msgspec.Meta(min_length=1, max_length=MOST_KEY_NODES)]
    in_order: bool = False


def require_key_nodes(nodes: KeyNodes) -> None:
    """Raises InvalidRecord, with a pointer, for what the types do not rule out."""
    seen = set[str]()
    for place, node in enumerate(nodes.nodes):
        at = f"/nodes/{place}"
        if node.name in seen:
            raise InvalidRecord(f"Duplicate key node {node.name!r}; names differ.", pointer=f"{at}/name")
        seen.add(node.name)
        if not node.tools and node.url is None and node.text is None:
            raise InvalidRecord("a key node has at least one of tools, url and text.", pointer=at)
        if node.when and not node.tools:
            raise InvalidRecord("`when` tests arguments of the calls of `tools`.", pointer=f"{at}/when")
        for index, test in enumerate(node.when):
            require_test(test, f"{at}/when/{index}")
        for name in ("url", "text"):
            if (expression := getattr(node, name)) is not None:
                _require_narrow(expression, f"{at}/{name}")
    if len(msgspec.json.encode(nodes)) > MOST_TASK_CHARACTERS:
        raise InvalidRecord(
            f"The key nodes of a task have more than {MOST_TASK_CHARACTERS:,} bytes; shorten expected observations.",
            pointer="/nodes",
        )


def read_key_nodes(value: Any) -> KeyNodes:
    """Of decoded JSON: {"nodes", "in_order"}, or a list of nodes. Raises InvalidRecord with a pointer."""
    found = convert({"nodes": value} if isinstance(value, list) else value, KeyNodes)
    require_key_nodes(found)
    return found


def node_values(node: KeyNode) -> dict[str, Any]:
    """As JSON, without what is not given."""
    values = given_values(node)
    return values if node.text is not None else {key: values[key] for key in values if key != "within"}


def _require_narrow(expression: str, at: str) -> None:
    if require_expression(expression, at).search("") is not None:
        raise InvalidRecord("The expression is found in every text.", pointer=at)
