"""What people write, as named metrics: comments to aspects, aspects to metrics, and how good the metrics are."""
