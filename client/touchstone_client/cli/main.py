"""`touchstone COMMAND ...`: finds the command, runs it, and turns an error into a sentence and an exit status."""

import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version

import httpx

from touchstone_client.cli import sources
from touchstone_client.cli.command import Command, Session
from touchstone_client.cli.output import Output, close_broken_pipe, printable, tolerate_encoding
from touchstone_client.cli.own import COMMANDS
from touchstone_client.cli.statuses import (
    BROKEN_PIPE,
    INTERRUPTED,
    REFUSED,
    SUCCEEDED,
    UNREACHABLE,
    USAGE,
    CommandFailed,
)
from touchstone_client.errors import MissingExtra, RewardServiceError, Unavailable, Unreachable

DISTRIBUTIONS = ("touchstone-rewards-client", "touchstone-rewards")  # the second holds the client too
_HELP = ("-h", "--help", "help")


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit status."""
    tolerate_encoding()
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        return _dispatch(given)
    except KeyboardInterrupt:
        sys.stderr.write("\nInterrupted.\n")
        return INTERRUPTED
    except BrokenPipeError:
        close_broken_pipe()
        return BROKEN_PIPE


def _dispatch(given: list[str]) -> int:
    if not given or (given[0] in _HELP and len(given) == 1):
        _print_help()
        return SUCCEEDED if given else USAGE
    if given[0] == "help":
        given = [*given[1:], "--help"]
    name, rest = given[0], given[1:]
    if name == "--version":
        print(f"touchstone {_version()}")  # noqa: T201
        return SUCCEEDED
    if (command := COMMANDS.get(name)) is not None:
        return run_command(command, rest)
    return _run_foreign(name, rest)


def run_command(command: Command, arguments: Sequence[str]) -> int:
    try:
        options = command.parser().parse_args(arguments)
    except SystemExit as end:  # argparse: a mistake, or --help
        return end.code if isinstance(end.code, int) else USAGE
    session = Session(options, Output(as_json=options.json))
    try:
        with session.stack:
            command.run(session)
    except CommandFailed as error:
        session.so_far |= error.result
        return _fail(session, str(error), error.status, pointer=error.pointer)
    except RewardServiceError as error:
        return _fail(session, _sentence(session, error), _status(error), pointer=error.pointer)
    except httpx.HTTPError as error:  # too many redirects
        return _fail(session, f"The server's answer cannot be followed: {error}.", REFUSED)
    except MissingExtra as error:
        return _fail(session, str(error), REFUSED)
    except BrokenPipeError:
        raise
    except (OSError, UnicodeDecodeError) as error:
        return _fail(session, _file_sentence(error), REFUSED)
    return SUCCEEDED


def _fail(session: Session, message: str, status: int, *, pointer: str | None = None) -> int:
    place = f" (at {pointer})" if pointer and pointer not in message else ""
    session.output.note(f"Error: {message}{place}")
    error = {"message": message, "pointer": pointer, "status": status}
    session.output.result({**session.so_far, "error": error})
    return status


def _status(error: RewardServiceError) -> int:
    """An endpoint that was switched off answers, and refuses."""
    if isinstance(error, Unavailable) and error.problem.get("switched_off"):
        return REFUSED
    return UNREACHABLE if isinstance(error, Unreachable | Unavailable) else REFUSED


def _sentence(session: Session, error: RewardServiceError) -> str:
    if isinstance(error, Unreachable):
        reason = f": {error.__cause__}" if error.__cause__ and str(error.__cause__) else ""
        return (
            f"{_address(session)} does not respond{reason}. Check the address, and whether the server runs."
        )
    detail = error.problem.get("detail")
    if isinstance(detail, str) and detail:
        return detail
    if error.status is not None and not error.problem:
        return (
            f"{_address(session)} answered with status {error.status}, not as a Touchstone server does; check the "
            "address."
        )
    return str(error)


def _address(session: Session) -> str:
    if "connection" in vars(session):
        return session.connection.url
    return str(getattr(session.options, "url", None) or "The server")


def _file_sentence(error: OSError | UnicodeDecodeError) -> str:
    if isinstance(error, UnicodeDecodeError):
        return f"A file is not UTF-8 text: {error.reason}."
    name = f"{error.filename}: " if error.filename else ""
    return f"{name}{error.strerror or error}."


def _run_foreign(name: str, rest: list[str]) -> int:
    found = sources.load_sources()
    prefixed = next((each for each in found if each.prefix == name and each.source is not None), None)
    if (owner := sources.find_source(found, name)) is not None and owner.source is not None:
        return owner.source.run(name, rest) or SUCCEEDED
    if prefixed is not None and prefixed.source is not None:
        return prefixed.source.run(*_split(rest)) or SUCCEEDED
    for problem in sources.problems_of(found):
        sys.stderr.write(f"{printable(problem)}\n")
    hyphens = name.replace("_", "-")
    hint = (
        f"did you mean `touchstone {hyphens}`?"
        if hyphens in COMMANDS
        else "`touchstone --help` lists all of them."
    )
    sys.stderr.write(f"Error: There is no command {printable(name)!r}; {hint}\n")
    return USAGE


def _split(arguments: list[str]) -> tuple[str, list[str]]:
    return (arguments[0], arguments[1:]) if arguments else ("help", [])


def _print_help() -> None:
    found = sources.load_sources()
    output = Output(as_json=False)
    output.say("usage: touchstone COMMAND ...        touchstone COMMAND --help\n")
    output.say("Against a server, over its API (`touchstone login` first):")
    _print_commands(output, {name: command.help for name, command in COMMANDS.items()}, shadowed={})
    taken = dict.fromkeys(COMMANDS, "touchstone")
    for source in found:
        if source.source is not None:
            output.say(f"\n{source.title}:")
            shadowed = {name: f"{source.prefix} {name}" for name in source.commands if name in taken}
            _print_commands(output, source.commands, shadowed)
            taken |= dict.fromkeys(source.commands, source.prefix)
    for problem in sources.problems_of(found):
        output.note(f"\n{problem}")


def _print_commands(output: Output, commands: Mapping[str, str], shadowed: dict[str, str]) -> None:
    """shadowed: what to type for a name that is another command's."""
    shown = {shadowed.get(name, name): text for name, text in commands.items()}
    width = max(map(len, shown), default=0)
    for name, text in shown.items():
        output.say(f"  {name:{width}}  {text}".rstrip())


def _version() -> str:
    for name in DISTRIBUTIONS:
        try:
            return version(name)
        except PackageNotFoundError:
            continue
    return "of an unknown version"
