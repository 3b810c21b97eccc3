"""The table of agents."""

from collections.abc import Sequence
from urllib.parse import urlencode

from django.urls import reverse

from apps.core.tables import DataTable, TableAction, TableColumn
from apps.trajectories.agent_overview import COSTED, AgentSummary


class AgentTable(DataTable[AgentSummary]):
    """options: project."""

    name = "agents"
    nouns = ("agent", "agents")
    default_sort = "-trajectories"
    search = ("agent_name", "agent_version")
    search_label = "Name"
    columns = (
        TableColumn(
            "agent",
            "Agent",
            value="name",
            sort=lambda row: (row.agent_name, row.agent_version),
            is_link=True,
            is_fixed=True,
        ),
        TableColumn(
            "success",
            "Success",
            value="success_words",
            sort=lambda row: row.success,
            kind="number",
            template="trajectories/cells/_agent_success.html",
            help="Of trajectories with a known outcome, with the 95 % interval (Wilson)",
        ),
        TableColumn(
            "judged",
            "n",
            value="judged",
            sort=lambda row: row.judged,
            kind="number",
            help="Trajectories with a known outcome",
        ),
        TableColumn(
            "trajectories",
            "Trajectories",
            value="trajectories",
            sort=lambda row: row.trajectories,
            kind="number",
        ),
        TableColumn("tasks", "Tasks", value="tasks", sort=lambda row: row.tasks, kind="number"),
        TableColumn(
            "reward",
            "Reward",
            value="reward",
            sort=lambda row: row.reward,
            kind="number",
            template="trajectories/cells/_agent_mean.html",
            help="Mean of the rewards from the environment",
        ),
        TableColumn(
            "tool_errors",
            "Failed tool calls",
            value="tool_error_words",
            sort=lambda row: row.tool_error_share,
            kind="number",
            template="trajectories/cells/_agent_tool_errors.html",
            help="Trajectories with a failed tool call",
        ),
        TableColumn(
            "steps",
            "Steps",
            value="steps",
            sort=lambda row: row.steps,
            kind="number",
            template="trajectories/cells/_agent_mean.html",
            help="Mean over trajectories",
        ),
        TableColumn(
            "tokens",
            "Tokens",
            value="tokens",
            sort=lambda row: row.tokens,
            kind="number",
            template="trajectories/cells/_agent_mean.html",
            help="Mean over trajectories; an estimate: bytes of text / 4",
        ),
        TableColumn(
            "cost",
            "Cost, US dollars",
            value="cost",
            sort=lambda row: row.cost,
            kind="number",
            template="trajectories/cells/_agent_cost.html",
            help=f"Mean of the newest trajectories that state one, of at most {COSTED}",
        ),
        TableColumn("newest", "Newest", value="newest", sort=lambda row: row.newest, kind="time"),
    )

    @property
    def actions(self) -> Sequence[TableAction]:  # type: ignore[override]
        address = reverse("trajectories:agents-compare", args=[self.project.slug])
        return (TableAction("compare", "Compare two", address, method="get", takes_all=False),)

    def row_key(self, row: AgentSummary) -> str:
        return row.key

    def row_url(self, row: AgentSummary) -> str:
        address = reverse("trajectories:trajectory-list", args=[self.project.slug])
        return f"{address}?{row.query}" if row.query else ""

    def row_label(self, row: AgentSummary) -> str:
        return row.name

    @staticmethod
    def comparison_query(keys: Sequence[str]) -> str:
        return urlencode(list(zip("ab", keys, strict=True)))
