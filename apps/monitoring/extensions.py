"""What the apps above add to monitoring. They register it, since imports go downwards only."""

from collections.abc import Callable, Sequence

from apps.core.registries import Registry
from apps.monitoring.measures import SampleRow
from apps.monitoring.models import Alert
from apps.monitoring.rules import Rule
from apps.rewards.models import Endpoint

AlertAction = Callable[[Alert, Rule], None]
RowEnrichment = Callable[[Endpoint, Sequence[SampleRow]], list[SampleRow]]

_alert_actions: Registry[AlertAction] = Registry()
_row_enrichments: Registry[RowEnrichment] = Registry()


def register_alert_action(action: AlertAction) -> None:
    """To be called for every alert when it is raised, in the same transaction."""
    _alert_actions.add(action)


def register_row_enrichment(enrichment: RowEnrichment) -> None:
    """To be called for the rows of a window before they are measured."""
    _row_enrichments.add(enrichment)


def act_on_alert(alert: Alert, rule: Rule) -> None:
    for action in _alert_actions:
        action(alert, rule)


def enriched_rows(endpoint: Endpoint, rows: Sequence[SampleRow]) -> list[SampleRow]:
    for enrichment in _row_enrichments:
        rows = enrichment(endpoint, rows)
    return list(rows)
