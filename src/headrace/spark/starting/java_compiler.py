"""Decides what Java optimises, and when: a young session runs much code a few times.

Java compiles a method quickly at first, and again with care once it was called often. The careful compiler took more
processor time in the first refresh of 19 stream tables than the tasks did.
"""

from __future__ import annotations

from pathlib import Path

DIRECTIVES = Path(__file__).with_name("java_compiler.directives")
"""Never to be compiled with care: Janino, which compiles the code that Spark generates, and what Spark looks into
closures with. They are called often while a session is young, and hardly ever afterwards. It was a third of what the
careful compiler did in a first refresh."""

PATIENT = (
    "-XX:Tier4InvocationThreshold=20000",
    "-XX:Tier4MinInvocationThreshold=5000",
    "-XX:Tier4CompileThreshold=60000",
)
"""Four times as many calls before Java optimises a method. Of small refreshes a third of the processor time went there,
for hundreds of them, into code of Spark's that plans; loops over rows have a threshold of their own, which stays."""


def compiler_options() -> tuple[str, ...]:
    """Return Java's options, quoted as Spark takes them apart."""
    return (*PATIENT, "-XX:+UnlockDiagnosticVMOptions", f'"-XX:CompilerDirectivesFile={DIRECTIVES}"')
