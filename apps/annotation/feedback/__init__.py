"""Import and export of feedback."""
