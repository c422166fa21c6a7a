"""Metrics, liveness and readiness of a project over HTTP.

In come the project's settings and the events of this process; out go `/metrics`, `/healthz` and `/readyz`. Nothing here
starts Spark.
"""
