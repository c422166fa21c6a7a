"""Deployments that schedulers finish: promoted on conditions, watched, and taken back.

In come conditions as users wrote them, and the catalog; out go promotions, roll-backs, and the events that tell.
"""
