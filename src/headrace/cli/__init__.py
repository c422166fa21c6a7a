"""The command line: a thin verb per action, a renderer per result. The only place that knows Rich."""
