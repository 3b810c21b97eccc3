"""The table of scores by agent version."""

from apps.agent_drift.selectors import VersionScore
from apps.core.tables import DataTable, TableColumn


class VersionScoreTable(DataTable[VersionScore]):
    """options: project."""

    name = "agent-drift"
    nouns = ("score", "scores")
    default_sort = "-evidence"
    columns = (
        TableColumn(
            "agent",
            "Agent version",
            value="name",
            sort=lambda row: (row.agent_name, row.since),
            is_fixed=True,
        ),
        TableColumn("score", "Score", value="score", sort="score"),
        TableColumn(
            "share",
            "Bad",
            value="share",
            sort=lambda row: row.share,
            kind="percent",
            template="agent_drift/cells/_share.html",
            help="Share of trajectories whose outcome failed, or whose score is below 0, with an interval that "
            "holds at all times together (95 %)",
        ),
        TableColumn(
            "reference",
            "Reference",
            value="reference.share",
            sort=lambda row: row.reference.share,
            kind="percent",
            template="agent_drift/cells/_reference.html",
            help="The same share of the reference version",
        ),
        TableColumn(
            "evidence",
            "Evidence",
            value="log_e_value",
            sort=lambda row: row.log_e_value,
            kind="number",
            template="agent_drift/cells/_evidence.html",
            help="Natural logarithm of the e-value that the version, or all versions since the reference, are worse",
        ),
        TableColumn("state", "State", value="state", sort="state", template="agent_drift/cells/_state.html"),
        TableColumn("since", "First trajectory", sort="since", kind="time"),
    )

    def row_key(self, row: VersionScore) -> str:
        return f"{row.agent_name}/{row.agent_version}/{row.score}"

    def row_label(self, row: VersionScore) -> str:
        return f"{row.score} of {row.name}"
