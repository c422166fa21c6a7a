"""The verbs, a file per group."""
