"""All error codes in the order of their documentation."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.error_codes.code import ErrorCode
from headrace.error_codes.sections import (
    catalog,
    command_line,
    data,
    database_sources,
    defects,
    definitions,
    demo,
    deployments,
    files,
    other_writers,
    projects,
    refreshing,
    servers,
    sinks,
    spark,
    unsupported,
)


@dataclass(frozen=True, slots=True)
class Section:
    """Codes documented under one heading.

    Args:
        family: The heading of the class they are raised as.
        title: The heading below it; empty where the class has one section.
        codes: The codes, in order.
        note: A sentence that stands above them.
    """

    family: str
    title: str
    codes: tuple[ErrorCode, ...]
    note: str = ""


WRONG_INPUT = "Wrong input: `UserError`"
SURROUNDINGS = "Something around Headrace: `EnvironmentFault`"
REPORT = "Nothing was published. Please report them, with the output of `headrace explain <table>`."

SECTIONS = (
    Section(WRONG_INPUT, "Names and definitions", definitions.CODES),
    Section(WRONG_INPUT, "Data", data.CODES),
    Section(WRONG_INPUT, "Refreshing and reading", refreshing.CODES),
    Section(WRONG_INPUT, "Database sources", database_sources.CODES),
    Section(WRONG_INPUT, "Sinks", sinks.CODES),
    Section(WRONG_INPUT, "Deployments", deployments.CODES),
    Section(WRONG_INPUT, "Projects", projects.CODES),
    Section(WRONG_INPUT, "A lake in a REST catalog", catalog.LAKES_MISUSED),
    Section("Not served: `Unsupported`", "", unsupported.CODES),
    Section(SURROUNDINGS, "Java, jars, Spark, the project's server", spark.CODES),
    Section(SURROUNDINGS, "The catalog database", catalog.CODES),
    Section(SURROUNDINGS, "The REST catalog of a lake", catalog.LAKES),
    Section(SURROUNDINGS, "Database sources' servers", servers.CODES),
    Section(SURROUNDINGS, "Sinks' servers", sinks.SERVERS),
    Section(SURROUNDINGS, "Disks and files", files.CODES),
    Section(SURROUNDINGS, "Other writers", other_writers.CODES),
    Section(SURROUNDINGS, "Deployments under way", deployments.MEANWHILE),
    Section(SURROUNDINGS, "The demo", demo.CODES),
    Section(
        "Defects: `InternalError`",
        "",
        defects.CODES,
        REPORT,
    ),
    Section("On the command line only", "", command_line.CODES),
)
