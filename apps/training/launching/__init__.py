"""Where training runs train: this machine, or a cluster that the operator has set up (docs/operations/clusters.md)."""
