"""What `pyproject.toml` cannot say: the wheel also holds the files at the root of the checkout that run time needs, in
`apps/_files`, and the client, so that one distribution is the whole application (apps/core/package_files.py).
"""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent
# build/docs is the documentation site, where `make docs` wrote one.
FILES = ("manage.py", "templates", "static", "build/docs", "client/pyproject.toml", "client/README.md")
PACKAGES = ("client/touchstone_client",)
UNWANTED = shutil.ignore_patterns("__pycache__", "*.py[cod]")


class BuildWithFiles(build_py):
    def run(self) -> None:
        super().run()
        if self.editable_mode:  # it runs from the checkout, and the client is installed from its folder
            return
        built = Path(self.build_lib)
        for name in FILES:
            if (ROOT / name).exists():
                _copy(ROOT / name, built / "apps" / "_files" / name)
        for name in PACKAGES:
            _copy(ROOT / name, built / Path(name).name)


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(source, target, ignore=UNWANTED)
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)


setup(cmdclass={"build_py": BuildWithFiles})
