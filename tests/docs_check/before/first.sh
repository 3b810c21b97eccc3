# Files that pages name. RUNS, MORE: how many trajectories are imported, few where training should take seconds.
python tests/docs_check/before/first.py
m export_trajectories sample --format openai --out runs.jsonl
mkdir runs backups
head "-${RUNS:-40}" runs.jsonl > runs/first.jsonl
tail "-${MORE:-20}" runs.jsonl > more.jsonl
printf 'a passphrase for the backups of the check\n' > passphrase
