"""`connect PROJECT KIND`: create a connector, or find the one of that name, and pull from it."""

import os
import sys
from typing import Any

from django.core.management.base import CommandParser

from apps.accounts.models import Project
from apps.accounts.services import project_for
from apps.connectors import services
from apps.connectors.executor import execute
from apps.connectors.models import Connector, ConnectorRun
from apps.connectors.services import ConnectorSpec
from apps.connectors.sources import KINDS, kind_named
from apps.connectors.sources.source import SourceKind
from apps.core.commands import CommandFailed, TouchstoneCommand
from apps.core.errors import DomainError
from apps.core.jobs import job_queue
from apps.core.jobs.job_queue import JobState

_SHOWN = 20  # rejections


class Command(TouchstoneCommand):
    help = (
        "Connect a project to a store of traces or files and pull its trajectories. Address and keys are read from the "
        "variables of the peer's own client where no option gives them, such as LANGFUSE_HOST."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("project")
        parser.add_argument("kind", metavar="KIND", help=", ".join(KINDS))
        parser.add_argument("--name", help="of the connector (default: the kind)")
        parser.add_argument("--address", help="address of the server")
        parser.add_argument("--username", help="public key, access key or user name")
        parser.add_argument(
            "--secret-stdin", action="store_true", help="read the key from the first line of standard input"
        )
        parser.add_argument(
            "--option",
            action="append",
            default=[],
            metavar="NAME=VALUE",
            help="an option of the kind, such as project=default (docs/connectors.md)",
        )
        parser.add_argument("--every", type=int, metavar="MINUTES", help="pull again on this schedule")
        parser.add_argument("--settle-minutes", type=int, help="quiet time after which a trace is taken")
        parser.add_argument("--overlap-minutes", type=int, help="how far each run looks back")
        parser.add_argument("--push", action="store_true", help="push scores back after the pull")
        parser.add_argument(
            "--push-endpoint", metavar="ENDPOINT", help="push its rewards too, now and in later pushes"
        )
        parser.add_argument("--no-run", action="store_true", help="save the connector and do not pull now")

    def run(self, *, project: str, kind: str, no_run: bool, **given: Any) -> dict[str, Any]:
        owner, source_kind = project_for(project), kind_named(kind)
        connector = self._connector(owner, source_kind, given)
        if no_run:
            return {"connector": connector.name, "id": connector.pk}
        run = services.start_run(connector=connector, by=None, is_claimed=True)
        self.say(f"Pulling from {connector.name} ({source_kind.title})")
        job_queue.work(run, execute)
        run.refresh_from_db()
        result = self._report(connector, run)
        return result | self._push(connector) if given["push"] else result

    def _push(self, connector: Connector) -> dict[str, Any]:
        run = services.start_run(
            connector=connector, direction=ConnectorRun.Direction.PUSH, by=None, is_claimed=True
        )
        job_queue.work(run, execute)
        run.refresh_from_db()
        self.say(f"{run.pushed} scores sent, {run.unchanged} unchanged, {run.rejected_count} rejected")
        for rejection in run.rejected[:_SHOWN]:
            self.say(f"  {rejection['source']} {rejection['pointer']}: {rejection['message']}")
        result = {"pushed": run.pushed, "unchanged": run.unchanged, "push_rejected": run.rejected}
        if run.state != JobState.SUCCEEDED:
            raise CommandFailed(
                f"The push {run.state}. {run.error}".rstrip(), result=result | {"error": run.error}
            )
        return result

    def _connector(self, owner: Project, kind: SourceKind, given: dict[str, Any]) -> Connector:
        """Created, or changed where an option differs."""
        name = given["name"] or kind.name
        existing = Connector.objects.select_related("project").filter(project=owner, name=name).first()
        if existing is not None and existing.kind != kind.name:
            raise DomainError(f"The connector {name} is of the kind {existing.kind}; choose another --name.")
        changes = _changes(kind, given, is_new=existing is None)
        secret = _secret(kind, given, is_new=existing is None)
        if existing is None:
            return services.create_connector(
                project=owner,
                kind=kind.name,
                spec=ConnectorSpec(name=name, **changes),
                secret=secret,
                by=None,
            )
        if not changes and not secret:
            return existing
        if "options" in changes:
            changes["options"] = existing.options | changes["options"]
        spec = services.changed_spec(existing, changes)
        return services.update_connector(connector=existing, spec=spec, secret=secret, by=None)

    def _report(self, connector: Connector, run: ConnectorRun) -> dict[str, Any]:
        self.say(
            f"{run.documents} documents: {run.created} trajectories created, {run.duplicates} already there"
            f" ({run.updated} updated), {run.rejected_count} records rejected, {run.waiting} traces not quiet yet"
        )
        for rejection in run.rejected[:_SHOWN]:
            self.say(f"  {rejection['source']}, line {rejection['line']}: {rejection['message']}")
        result = {
            "connector": connector.name,
            "id": connector.pk,
            "run": run.pk,
            "state": run.state,
            **{name: getattr(run, name) for name in ("documents", "created", "duplicates", "updated")},
            **{name: getattr(run, name) for name in ("waiting", "rejected", "rejected_count")},
        }
        if run.state != JobState.SUCCEEDED:
            raise CommandFailed(
                f"The pull {run.state}. {run.error}".rstrip(), result=result | {"error": run.error}
            )
        return result


def _changes(kind: SourceKind, given: dict[str, Any], *, is_new: bool) -> dict[str, Any]:
    """The fields that options or, for a new connector, variables give."""
    changes: dict[str, Any] = {}
    for name in ("address", "username"):
        value = given[name] or (_variable(kind, name) if is_new else "")
        if value:
            changes[name] = value
    options = {
        option.name: value for option in kind.options if is_new and (value := _variable(kind, option.name))
    }
    for pair in given["option"]:
        name, equals, value = pair.partition("=")
        if not equals:
            raise DomainError(f"--option {pair!r} has no value; write --option NAME=VALUE.")
        options[name.strip()] = value
    if options:
        changes["options"] = options
    if given["every"] is not None:
        changes["every_minutes"] = given["every"]
    for name in ("settle_minutes", "overlap_minutes", "push_endpoint"):
        if given[name] is not None:
            changes[name] = given[name]
    return changes


def _secret(kind: SourceKind, given: dict[str, Any], *, is_new: bool) -> str:
    if given["secret_stdin"]:
        return sys.stdin.readline().strip()
    return _variable(kind, "secret") if is_new else ""


def _variable(kind: SourceKind, field: str) -> str:
    return next((value for name in kind.environment.get(field, ()) if (value := os.environ.get(name))), "")
