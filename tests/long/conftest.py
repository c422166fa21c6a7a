"""What takes too long for every change: run by `make test-long`."""

from pipeline.conftest import project, shared

__all__ = ["project", "shared"]
