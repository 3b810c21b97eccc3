import json
from pathlib import Path

import jsonschema
import pytest

from tests.workers.schema.test_storage import RECORDS
from workers.schema.jsonschemas import ITEM, schemas
from workers.schema.records import KIND_OF
from workers.schema.storage import to_builtins

PUBLISHED = Path(__file__).parents[3] / "docs/schemas"


def test_the_published_schemas_are_those_of_the_code():
    published = {path.stem: json.loads(path.read_text()) for path in PUBLISHED.glob("*.json")}
    assert published == schemas(), "run: python -m workers.schema.jsonschemas docs/schemas"


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: KIND_OF[type(record)])
def test_records_fit_their_schema(record):
    value = json.loads(json.dumps(to_builtins(record)))
    jsonschema.validate(value, schemas()[KIND_OF[type(record)]])


@pytest.mark.parametrize(
    "item", [{"text": "a"}, {"messages": [{"role": "user"}]}, {"prompt": "a", "response": "b"}]
)
def test_items_fit_their_schema(item):
    jsonschema.validate(item, ITEM)


@pytest.mark.parametrize(
    "item", [{}, {"text": "a", "input_ids": [1]}, {"prompt": "a"}, {"text": "a", "colour": 1}]
)
def test_the_schema_refuses_what_parsing_refuses(item):
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(item, ITEM)
