m import_feedback guide pairs.jsonl --format trl
python - <<'END'
import pyarrow, pyarrow.parquet
table = pyarrow.table({"question": ["Where is it?", "When?"], "answer": ["Here.", "Today."], "grade": [1.0, 0.0]})
pyarrow.parquet.write_table(table, "table.parquet")
END
