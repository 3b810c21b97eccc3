"""The form `standalone`: the model, and the code of this package that reads and scores trajectories, renamed.

What is copied are the modules that loading this kind of model imports, as they are; so that its numbers are those of
Touchstone, and it needs no server, database or Django.
"""

import ast
import json
import shutil
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from subprocess import run
from typing import Any

from safetensors.torch import save_file

import workers
from workers.errors import RewardError
from workers.models.artifact import MANIFEST, load_scorer, write_manifest
from workers.models.backbones.encoder import EMBEDDED, encoder_folder, load_encoder
from workers.models.exporting.source import PROBE, ExportOptions, ExportSource, ExportUsage
from workers.models.files import WEIGHTS, file_hash, tensors
from workers.schema import Features, Text, Trajectory
from workers.schema.atif_writer import to_atif

PACKAGE = "touchstone_model"
_FOLDER = Path(workers.__file__).parent
_NAMED = ("from workers.", "import workers.", '"workers.')  # how modules name others
_ROOTS = ("models.artifact", "schema.messages", "schema.atif")
_NEEDED = {  # by the first part of a module's name: the distribution that has it
    "torch": "torch",
    "transformers": "transformers",
    "safetensors": "safetensors",
    "tokenizers": "tokenizers",
    "numpy": "numpy",
    "scipy": "scipy",
    "msgspec": "msgspec",
    "re2": "google-re2",
    "jinja2": "jinja2",
}
_KIND_MODULES = {"generative": "models.generative.model"}
_TOLERANCE = 1e-6


def write(source: ExportSource, folder: Path, options: ExportOptions) -> ExportUsage:
    modules = _closure(
        [*_ROOTS, _KIND_MODULES.get(source.kind, f"models.kinds.{source.kind.replace('-', '_')}")]
    )
    package = folder / PACKAGE
    needed = _copy_code(modules, package)
    shutil.copyfile(Path(__file__).parent / "standalone_entry.txt", package / "__init__.py")
    if (licence := _FOLDER.parent / "LICENSE").is_file():
        shutil.copyfile(licence, folder / licence.name)
    _copy_model(source, package / "model")
    _write_project(folder, needed)
    checked = _check(source, folder)
    return ExportUsage(
        sections=[("How to score", _scoring(source)), ("What it is", _about(modules, package))],
        library="touchstone-model",
        pipeline="text-classification",
        tags=["reward-model"],
        checked=checked,
    )


def _closure(roots: list[str]) -> dict[str, Path]:
    """The modules of this package that these import, by their names without `workers.`, packages included."""
    found: dict[str, Path] = {}
    waiting = [*roots]
    while waiting:
        name = waiting.pop()
        path = _path(name)
        if name in found or path is None:
            continue
        found[name] = path
        waiting += _imported(path)
        if "." in name:
            waiting.append(name.rpartition(".")[0])
    return found


def _path(name: str) -> Path | None:
    path = _FOLDER.joinpath(*name.split("."))
    for candidate in (path / "__init__.py", path.with_suffix(".py")):
        if candidate.is_file():
            return candidate
    return None


def _imported(path: Path) -> Iterator[str]:
    for node in _imports(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("workers."):
            module = (node.module or "").removeprefix("workers.")
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)


def _imports(tree: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """Those that run: not for the type checker alone."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        else:
            yield from _imports(node)


def _copy_code(modules: dict[str, Path], package: Path) -> list[str]:
    """Returns the distributions that the code needs."""
    needed = set()
    for path in modules.values():
        target = package / path.relative_to(_FOLDER)
        target.parent.mkdir(parents=True, exist_ok=True)
        text = path.read_text(encoding="utf-8")
        for node in _imports(ast.parse(text)):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names]
            needed |= {_NEEDED[top] for name in names if (top := name.partition(".")[0]) in _NEEDED}
        for named in _NAMED:
            text = text.replace(named, named.replace("workers", PACKAGE))
        target.write_text(text, encoding="utf-8")
        for data in path.parent.glob("*.txt"):
            if data.name != "standalone_entry.txt":
                shutil.copyfile(data, target.parent / data.name)
    return sorted(needed)


def _copy_model(source: ExportSource, folder: Path) -> None:
    """The artifact, with the weights of the encoder where the package of the server would have had them."""
    shutil.copytree(source.folder, folder)
    backbone = source.manifest["backbone"]
    if backbone.get("encoder") != EMBEDDED:
        return
    save_file(tensors(load_encoder(encoder_folder(EMBEDDED))), folder / WEIGHTS)
    digest = file_hash(folder / WEIGHTS)
    manifest = json.loads((folder / MANIFEST).read_text())
    manifest["backbone"] |= {"encoder": "own", "weights_sha256": digest}
    manifest["files"] = {**manifest.get("files", {}), WEIGHTS: digest}
    write_manifest(folder, manifest)


def _write_project(folder: Path, needed: list[str]) -> None:
    pins = []
    for name in needed:
        try:
            pins.append(f"{name}>={version(name).partition('+')[0].rpartition('.')[0]}")
        except PackageNotFoundError:
            pins.append(name)
    lines = "\n".join(f'    "{pin}",' for pin in pins)
    (folder / "pyproject.toml").write_text(
        f"""[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = "touchstone-model"
version = "1"
description = "A reward model of agent trajectories, with the code that reads and scores them"
requires-python = ">=3.11"
dependencies = [
{lines}
]

[tool.setuptools.packages.find]
include = ["{PACKAGE}*"]

[tool.setuptools.package-data]
"*" = ["*"]
""",
        encoding="utf-8",
    )


def _check(source: ExportSource, folder: Path) -> str:
    """In a process that does not have this package."""
    model = load_scorer(source.folder)
    content = model.warm_up_content
    asked: dict[str, Any]
    if isinstance(content, Features):
        asked = {"features": [list(row) for row in content.rows]}
    elif isinstance(content, Trajectory):
        asked = {"trajectory": to_atif(content)}
    else:
        content, asked = Text(PROBE), {"text": PROBE}
    ours = model.score([model.render(content)])[0].raw
    code = (
        f"import sys, json; sys.path[:0] = [{str(folder)!r}]; from {PACKAGE} import load; "
        f"print(json.dumps(load().score([json.loads(sys.argv[1])])[0]['raw'])); "
        "assert not any(name.partition('.')[0] in ('workers', 'apps') for name in sys.modules)"
    )
    done = run(  # noqa: S603 - our own code
        [sys.executable, "-c", code, json.dumps(asked)],
        capture_output=True,
        text=True,
        cwd=folder,
        check=False,
    )
    if done.returncode:
        raise RewardError(f"the package does not load: {done.stderr.strip().rpartition(chr(10))[2]}")
    theirs = float(done.stdout)
    if abs(theirs - ours) > _TOLERANCE * max(1.0, abs(ours)):
        raise RewardError(f"the package gives {theirs}, the model {ours}, so it is of no use.")
    return f"the package, in a separate process: a reward within {abs(theirs - ours):.1e} of that of the artifact"


def _scoring(source: ExportSource) -> str:
    example = '{"messages": [{"role": "user", "content": "..."}, {"role": "assistant", "content": "..."}]}'
    if source.kind == "features":
        example = '{"features": [[0.1, 0.2]]}'
    return f"""`pip install .` in this folder, or put it on `sys.path`.

```python
from {PACKAGE} import load

model = load()  # device="cuda" for a GPU
result = model.score([{example}])[0]
print(result["reward"], result["raw"], result["std"], result["steps"])
```

An input is one of `messages` (as OpenAI's API has them, with tool calls), `trajectory` (ATIF), `text` or `features`. A
result has `reward` (`(raw - {source.median!r}) / {source.std!r}`), `raw`, `offset`, `std` of the heads, `steps` (one
reward for each agent step), `criteria` (of those named in `score(inputs, criteria=[...])`), `out_of_distribution`
(above 1: unlike what it was trained on) and `truncated`."""


def _about(modules: dict[str, Path], package: Path) -> str:
    size = sum(path.stat().st_size for path in (package / "model").rglob("*") if path.is_file())
    return (
        f"{len(modules)} modules of Touchstone that read trajectories and compute this kind of model, unchanged but "
        f"for their package's name, and {size / 1e6:,.1f} MB of weights. Nothing is downloaded, and no code comes from "
        "the weights. It computes one batch at a time; there is no queue, no cache between calls and no monitoring."
    )
