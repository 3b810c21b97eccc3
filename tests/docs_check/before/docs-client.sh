m import_feedback guide pairs.jsonl --format trl
m freeze_dataset guide answers
python - <<'END'
import pyarrow, pyarrow.parquet
table = pyarrow.table({"question": ["Where is it?", "When?"], "answer": ["Here.", "Today."], "grade": [1.0, 0.0]})
pyarrow.parquet.write_table(table, "table.parquet")
END
