# Files that pages name: comparisons, trajectories and items of the sample project. COMPARISONS: few, and with MORE and
# RUNS few trajectories, where a recipe should be chosen without trying several.
m export_dataset sample/sample --format trl --out all.jsonl
head "-${COMPARISONS:-150}" all.jsonl > pairs.jsonl  # enough to learn from, and soon trained
m export_trajectories sample --format openai --out runs.jsonl
mkdir runs backups
head "-${RUNS:-40}" runs.jsonl > runs/first.jsonl
tail "-${MORE:-20}" runs.jsonl > more.jsonl
printf 'a passphrase for the backups of the check\n' > passphrase
python tests/docs_check/before/first.py
