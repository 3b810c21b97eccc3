"""What a monitor's rule does automatically when it raises an alert."""

import logging

from apps.core.errors import DomainError
from apps.monitoring.models import Alert
from apps.monitoring.rules import Rule
from apps.retraining.cycle import start_cycle
from apps.retraining.follow_up import follow_up_alert

logger = logging.getLogger(__name__)


def act_on_alert(alert: Alert, rule: Rule) -> None:
    """Ask for annotations, and start a retraining cycle. Where that fails the alert stays, and a user can do it."""
    if not rule.asks:
        return
    try:
        follow_up = follow_up_alert(alert=alert, campaign=None, count=rule.asks, by=None)
        if rule.turns:
            start_cycle(endpoint=alert.endpoint, by=None, follow_up=follow_up, automatic=True)
    except DomainError as error:
        logger.warning("the rule %r of %s: %s", rule.name, alert.endpoint, error.message)
