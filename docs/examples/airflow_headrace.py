"""An Airflow DAG that loads a source and then has Headrace bring what reads it up to date.

The gate keeps every refresh away from the half-loaded table, also those of a `headrace run` elsewhere.
"""

from __future__ import annotations

import datetime as dt
import os

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG

PROJECT = os.environ.get("HEADRACE_PROJECT", "/srv/shop")
"""The project folder, where the worker sees it."""

LOAD = """INSERT INTO shop.orders
SELECT coalesce(max(id), 0) + 1, 'EU', CAST(10.00 AS DECIMAL(12,2)) FROM shop.orders"""
"""In place of the load that you have."""


def headrace(task_id: str, words: str) -> BashOperator:
    """Return a task that runs a command of Headrace in the project."""
    return BashOperator(
        task_id=task_id,
        bash_command=f"headrace {words}",
        env={"HEADRACE_PROJECT": PROJECT, "LOAD": LOAD, "NO_COLOR": "1"},
        append_env=True,
    )


with DAG(
    dag_id="headrace_shop",
    schedule="@hourly",
    start_date=dt.datetime(2026, 1, 1, tzinfo=dt.UTC),
    catchup=False,
    max_active_runs=1,
    default_args={"retries": 2, "retry_delay": dt.timedelta(minutes=1)},
) as dag:
    close = headrace("close_gate", "gate close shop.orders")
    load = headrace("load", 'sql "$LOAD"')
    open_gate = headrace("open_gate", "gate open shop.orders")  # not after a failed load: then somebody looks first
    refresh = headrace("refresh", "refresh shop.revenue shop.large --wait 5min")
    check = headrace("verify", "verify shop.revenue shop.large")  # exit status 1 if a table differs from its query

    close >> load >> open_gate >> refresh >> check
