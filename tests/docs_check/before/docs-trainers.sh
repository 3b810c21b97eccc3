cp tests/trajectories/tracing/agentlightning_spans.jsonl spans.jsonl
