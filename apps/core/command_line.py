"""Django's commands: what `manage.py` runs, and the same commands for the script `touchstone`.

`touchstone` belongs to the client's distribution; it finds `command_source` by the entry point group
`touchstone.commands`. Until a command runs, nothing is imported here but the standard library: `touchstone --help`
lists the commands without Django.
"""

import gc
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from apps.core.package_files import IS_CHECKOUT

_APPS = Path(__file__).parents[1]
_HELP = 'help = "'
# Which apps' commands are listed under which heading; what is in none of them is under the last.
_GROUPS = {
    "This machine": ("core", "demo", "machines"),
    "People, projects and keys": ("accounts", "lifecycle"),
    "Trajectories and feedback": ("trajectories", "annotation", "judges", "metrics", "connectors"),
    "Datasets and models": ("datasets", "training", "reward_studies"),
    "Endpoints": ("rewards", "bulk"),
    "Other": (),
}


def run_command_line(arguments: Sequence[str]) -> None:
    """arguments: as `sys.argv`, the program's name first. Exits with a sentence where nothing is installed."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "apps.config.settings")
    # Threads of torch that wait for one another let others work meanwhile: ours share the machine with each other.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    if home := _option(arguments[1:], "--home"):  # the settings read it, so it comes before them
        os.environ["TOUCHSTONE_HOME"] = home
    try:
        from django.core.management import execute_from_command_line

        from apps.core.distributions import installed_version, taken_name
        from apps.core.storage import private_files

        private_files.make_private()
        if sentence := taken_name():
            sys.exit(f"Error: {sentence}")
        installed_version()  # missing where the code is newer than what was installed
        # The client is no dependency that pip would look up: an index may have another one of that name. Only looked
        # for: importing it takes a sixth of the start of a command.
        if find_spec("touchstone_client") is None:
            raise ModuleNotFoundError("touchstone_client")  # noqa: TRY301
    except ModuleNotFoundError as error:
        advice = (
            "Run `make install`, then use `.venv/bin/python`."
            if IS_CHECKOUT
            else f"{error.name or error} is missing; install the wheel again, without `--no-deps`."
        )
        sys.exit(f"Touchstone is not installed for {sys.executable}. {advice}")
    _require_right_settings()
    if list(arguments[1:]) in (["help"], ["--help"], ["-h"]):
        sys.stdout.write(list_of_commands(arguments[0].rpartition("/")[2]))
        return
    _set_up()
    execute_from_command_line(list(arguments))


def _require_right_settings() -> None:
    """Exits with the sentence of a setting that is wrong, where Django would show a traceback."""
    from django.conf import settings
    from django.core.exceptions import ImproperlyConfigured

    try:
        settings.INSTALLED_APPS  # noqa: B018 - reads them
    except ImproperlyConfigured as error:
        sys.exit(f"Error: {error}")


def _set_up() -> None:
    """Import the apps, and leave them out of the collections to come."""
    import django

    gc.disable()  # it would look through all that is imported, again and again: a sixth of the start
    try:
        django.setup()
        gc.freeze()
    finally:
        gc.enable()


def _option(arguments: Sequence[str], name: str) -> str:
    for argument, following in zip(arguments, [*arguments[1:], ""], strict=True):
        if argument == name:
            return following
        if argument.startswith(f"{name}="):
            return argument.partition("=")[2]
    return ""


def list_of_commands(program: str) -> str:
    """Our commands with what they do, under headings. Those of Django and of other packages run too."""
    by_group: dict[str, list[Path]] = {title: [] for title in _GROUPS}
    for path in _command_files():
        app = path.parts[-4]
        title = next((title for title, apps in _GROUPS.items() if app in apps), "Other")
        by_group[title].append(path)
    width = max(len(path.stem) for path in _command_files())
    lines = [f"usage: {program} COMMAND ...        {program} COMMAND --help"]
    for title, paths in by_group.items():
        if paths:
            lines += ["", f"{title}:"]
            lines += [
                f"  {path.stem:{width}}  {_summary(path)}"
                for path in sorted(paths, key=lambda path: path.stem)
            ]
    return "\n".join([*lines, ""])


class ManageCommands:
    """The commands of the server, as `touchstone` takes them from an entry point. See touchstone_client.cli.sources."""

    title = "On the server's machine (the same as `python manage.py COMMAND`)"

    def commands(self) -> Mapping[str, str]:
        return {path.stem: _summary(path) for path in sorted(_command_files(), key=lambda path: path.stem)}

    def run(self, name: str, arguments: Sequence[str]) -> int:
        """Any command of Django, listed or not."""
        run_command_line(["touchstone manage", name, *arguments])
        return 0


def command_source() -> ManageCommands:
    """Of the entry point."""
    return ManageCommands()


def _command_files() -> Iterator[Path]:
    return (path for path in _APPS.glob("*/management/commands/*.py") if not path.stem.startswith("_"))


def _summary(path: Path) -> str:
    """The command's help, or else the first line of its module, read without importing it."""
    lines = path.read_text(encoding="utf-8").splitlines()
    for line in lines:
        text = line.strip()
        if text.startswith(_HELP) and text.endswith('"'):
            return text.removeprefix(_HELP).removesuffix('"').removesuffix(".")
    first = lines[0].strip('"') if lines and lines[0].startswith('"""') else ""
    usage, colon, sentence = first.partition("`: ")
    text = sentence if usage.startswith("`") and colon else first
    return f"{text[:1].upper()}{text[1:]}".removesuffix(".")
