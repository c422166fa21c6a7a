"""Recognises how an object store refuses, by what its libraries say.

Java's speak in Spark, and Arrow's in this process.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from headrace.errors import EnvironmentFault

_DOCTOR = "`headrace doctor` tries to write there."


@dataclass(frozen=True, slots=True)
class StoreFault:
    """One way in which an object store refuses.

    Args:
        code: Headrace's code.
        says: Pattern of what is said then.
        message: What happened.
        hint: What to do.
        retryable: Whether trying again may help.
    """

    code: str
    says: str
    message: str
    hint: str
    retryable: bool = False


STORE_FAULTS = (
    StoreFault(
        "STORE_CLOCK_SKEWED",
        r"RequestTimeTooSkewed|REQUEST_TIME_TOO_SKEWED|request time and the (?:current|server's) time is too large",
        "The object store refuses requests of a machine whose clock is wrong.",
        "Switch time synchronisation (NTP) on, on every machine that runs Headrace or executors.",
        retryable=True,
    ),
    StoreFault(
        "STORE_BUCKET_MISSING",
        r"NoSuchBucket|NO_SUCH_BUCKET|[Tt]he specified bucket does not exist",
        "The bucket of the warehouse does not exist.",
        f"Make it, or correct warehouse in headrace.toml. {_DOCTOR}",
    ),
    StoreFault(
        "STORE_CREDENTIALS",
        r"InvalidAccessKeyId|INVALID_ACCESS_KEY_ID|SignatureDoesNotMatch|SIGNATURE_DOES_NOT_MATCH|ExpiredToken|"
        r"InvalidToken|UNRECOGNIZED_CLIENT|Access Key Id you provided does not exist|Unable to load credentials|"
        r"signature we calculated does not match|security token included in the request is (?:expired|invalid)|"
        r"provided token (?:has expired|is malformed)",
        "The object store does not know the credentials that it was given.",
        f"Check the keys in [storage] of headrace.toml and the variables that they name. {_DOCTOR}",
    ),
    StoreFault(
        "STORE_DENIED",
        r"\bAccessDenied\b|ACCESS_DENIED|Access Denied \(|Status Code: 403|HTTP status 403",
        "The object store denies access to the warehouse.",
        f"Let these credentials read, write, list and delete objects below warehouse. {_DOCTOR}",
    ),
    StoreFault(
        "STORE_UNAVAILABLE",
        r"SlowDown|SLOW_DOWN|reduce your request rate|Service: S3, Status Code: 5\d\d|HTTP status 5\d\d|"
        r"SdkClientException: Unable to execute HTTP request|ApiCallTimeoutException|ApiCallAttemptTimeoutException|"
        r"NETWORK_CONNECTION|INTERNAL_FAILURE during",
        "The object store does not answer, or has too much to do.",
        "Try again; check the endpoint in [storage] of headrace.toml if it stays so.",
        retryable=True,
    ),
)
"""In the order they are tried: a wrong clock and unknown keys are answered 403, too."""


def store_error(error: Exception) -> EnvironmentFault | None:
    """Return the error for an object store that refuses this process; None for another failure."""
    fault = store_fault(str(error))
    if fault is None:
        return None
    said = " ".join(str(error).split())
    return EnvironmentFault(fault.code, fault.message, detail=said, hint=fault.hint, retryable=fault.retryable)


def store_fault(text: str) -> StoreFault | None:
    """Return how an object store refused, by what was said; None for another failure."""
    return next((fault for fault in STORE_FAULTS if re.search(fault.says, text)), None)
