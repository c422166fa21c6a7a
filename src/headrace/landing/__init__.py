"""Lands database sources: brings committed changes to mirrors and publishes them.

In come batches of a capture with their position. Out go published mirrors and change logs, and an acknowledged
source. Door: `lander`.
"""
