"""The pages of accounts, one module per thing."""
