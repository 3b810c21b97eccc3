"""What to ask people next: how much a judgement of each item would teach, and how many are still needed."""
