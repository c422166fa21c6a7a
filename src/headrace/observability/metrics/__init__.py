"""Metrics of a project in the text format of Prometheus.

In come a project's state, as the API returns it, and entries of the history. Out goes text; `metric_list.py` has every
metric by name.
"""
