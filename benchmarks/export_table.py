"""Which kinds of models have which forms of export: the tables of docs/model-exports.md.

`python -m benchmarks.export_table --write` writes them from `workers.schema.export_forms`.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.docs_writer import write_between
from workers.schema.export_forms import ANY, EXPORT_FORMS

DOCS = Path(__file__).parents[1] / "docs/model-exports.md"
KINDS = {
    "step-encoder": "trained here",
    "linear": "trained here",
    "hybrid": "trained here",
    "features": "trained here, on numbers",
    "decoder": "trained here, or imported (one linear head on a causal model)",
    "vision-decoder": "trained here, on a decoder that reads pictures",
    "generative": "trained here, or imported (writes its verdict)",
    "classifier": "imported (BERT types, pairs of texts, heads of several layers)",
    "gated-decoder": "imported (attributes weighed by a gate)",
    "process-decoder": "imported (step rewards)",
    "implicit-process": "trained here, or imported (step rewards of a policy and its reference model)",
    "goal-likeness": "imported (encoders of texts and pictures), and adapted here",
}


def table() -> Iterator[str]:
    """The forms; then, by kind of backbone and form, what a model becomes, a dash for a form that it does not have."""
    yield "| form | what it is | loaded by |"
    yield "|---|---|---|"
    for form in EXPORT_FORMS.values():
        yield f"| `{form.name}` | {form.about} | {form.loaded_by} |"
    every = [form for form in EXPORT_FORMS.values() if ANY in form.kinds]
    others = [form for form in EXPORT_FORMS.values() if ANY not in form.kinds]
    yield ""
    for form in every:
        yield f"- `{form.name}`: of every kind, {form.kinds[ANY]}."
    yield ""
    yield "| kind | | " + " | ".join(f"`{form.name}`" for form in others) + " |"
    yield "|---|---|" + "---|" * len(others)
    for kind, about in KINDS.items():
        cells = [form.becomes(kind) or "-" for form in others]
        yield f"| `{kind}` | {about} | " + " | ".join(cells) + " |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="into docs/model-exports.md; else it is printed")
    if parser.parse_args().write:
        write_between(DOCS, "export_table", table())
    else:
        sys.stdout.write("\n".join(table()) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
