# Files that pages name: comparisons, trajectories and items of the sample project.
m export_dataset sample/sample --format trl --out all.jsonl
head -150 all.jsonl > pairs.jsonl  # enough to learn from, and soon trained
m export_trajectories sample --format openai --out runs.jsonl
mkdir runs backups
head -40 runs.jsonl > runs/first.jsonl
sed -n 41,60p runs.jsonl > more.jsonl
printf 'a passphrase for the backups of the check\n' > passphrase
python tests/docs_check/before/first.py
