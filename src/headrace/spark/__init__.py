"""Runs SQL on Spark and prepares its sessions; the only package that uses PySpark.

In come SQL texts and settings. Out go rows, counts and failures in Headrace's words. Doors: `runner`, `session`.
"""
