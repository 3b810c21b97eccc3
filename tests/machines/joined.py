"""`touchstone join` as a process of another machine: with a home, and nothing else of the installation."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
_OF_THE_INSTALLATION = ("TOUCHSTONE_", "DATABASE_URL", "CELERY_", "DJANGO_", "PG")


@dataclass
class JoinedProcess:
    process: subprocess.Popen[str]
    home: Path
    output: Path

    @classmethod
    def start(cls, home: Path, url: str, token: str) -> "JoinedProcess":
        home.mkdir(exist_ok=True)
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith(_OF_THE_INSTALLATION)
        }
        environment |= {"TOUCHSTONE_HOME": str(home), "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "manage.py", "join", url, "--name", home.name]
        command += ["--token", token] if token else []
        output = home.with_suffix(".txt")
        with output.open("a") as out:
            process = subprocess.Popen(
                command, cwd=ROOT, env=environment, stdout=out, stderr=subprocess.STDOUT, text=True
            )
        return cls(process, home, output)

    @property
    def printed(self) -> str:
        return self.output.read_text()

    def kill(self) -> None:
        """As where the machine loses its power."""
        self.process.kill()
        self.process.wait()
