"""`deploy`, `rollback`, `switch-off`, `switch-on`: what an endpoint serves."""

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from touchstone_client.cli.command import Command, Session
from touchstone_client.cli.statuses import UsageFailed
from touchstone_client.resources.endpoints import Endpoint


def _add_deploy(parser: ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help="name, or name@version")
    parser.add_argument("endpoint", metavar="ENDPOINT", help="created where there is none of the name")
    parser.add_argument("--shadow", action="store_true", help="answer next to the active revision, unseen")
    parser.add_argument(
        "--canary", type=float, metavar="SHARE", help="answer this share of requests, such as 0.1"
    )
    parser.add_argument("--automatic", action="store_true", help="rules decide over the release")
    parser.add_argument("--reason", help="why it should serve although a check of its report failed")


def _deploy(session: Session) -> None:
    options = session.options
    if options.shadow and options.canary is not None:
        raise UsageFailed("--shadow and --canary are two stages of a release; leave one of them out.")
    stage = "shadow" if options.shadow else "canary" if options.canary is not None else None
    if options.automatic and stage is None:
        raise UsageFailed("--automatic is about a release: add --shadow or --canary SHARE.")
    endpoint = session.client.endpoints.deploy(
        options.model,
        options.endpoint,
        stage=stage,
        share=options.canary,
        automatic=options.automatic or None,
        reason=options.reason,
    )
    revision = endpoint.revision
    number = revision.number if revision else endpoint.active
    model = ", ".join(models_of(revision.spec if revision else None)) or options.model
    as_what = "serves it" if stage is None else f"has it as a {stage}"
    session.output.say(f"{endpoint.endpoint} {as_what}: revision {number}, {model}.")
    session.output.result({"endpoint": endpoint.endpoint, "revision": number, "model": model, "stage": stage})


def models_of(spec: Mapping[str, Any] | None) -> list[str]:
    """Names of the models in a spec."""
    components = (spec or {}).get("components")
    entries = components if isinstance(components, list) else []
    return [str(entry["model"]) for entry in entries if isinstance(entry, Mapping) and entry.get("model")]


def _add_endpoint(parser: ArgumentParser) -> None:
    parser.add_argument("endpoint", metavar="ENDPOINT")


def _add_rollback(parser: ArgumentParser) -> None:
    _add_endpoint(parser)
    parser.add_argument("--to", type=int, metavar="REVISION", help="by default the one before the active one")


def _rollback(session: Session) -> None:
    endpoint = session.client.endpoints.rollback(session.options.endpoint, to=session.options.to)
    models = ", ".join(models_of(endpoint.spec))
    session.output.say(
        f"{endpoint.endpoint} serves revision {endpoint.active}, {models or 'without a model'}."
    )
    session.output.result(
        {"endpoint": endpoint.endpoint, "revision": endpoint.active, "model": models or None}
    )


def _add_switch_off(parser: ArgumentParser) -> None:
    _add_endpoint(parser)
    parser.add_argument("--reason", required=True, help="shown to callers")


def _switch_off(session: Session) -> None:
    _switched(session, session.client.endpoints.switch_off(session.options.endpoint, session.options.reason))


def _switch_on(session: Session) -> None:
    _switched(session, session.client.endpoints.switch_on(session.options.endpoint))


def _switched(session: Session, endpoint: Endpoint) -> None:
    state = f"off: {endpoint.switched_off_reason}" if endpoint.switched_off else "on."
    session.output.say(f"{endpoint.endpoint} is {state}")
    session.output.result(
        {
            "endpoint": endpoint.endpoint,
            "switched_off": endpoint.switched_off,
            "reason": endpoint.switched_off_reason,
        }
    )


COMMANDS = (
    Command("deploy", "Put a model on an endpoint", _add_deploy, _deploy),
    Command("rollback", "Serve an earlier revision of an endpoint again", _add_rollback, _rollback),
    Command("switch-off", "Answer every request of an endpoint with a reason", _add_switch_off, _switch_off),
    Command("switch-on", "Undo switch-off", _add_endpoint, _switch_on),
)
