"""Exchanges generations: what is written for each, and what is published.

In come generations at one cut, under leases. Out goes one publication, with all that has to follow in it.
"""
