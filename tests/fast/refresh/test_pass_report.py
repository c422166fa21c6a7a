"""What `explain --passes` prints of passes."""

from __future__ import annotations

from headrace.refresh.explain.pass_report import report_text
from headrace.results.refresh_results import PassInfo


def test_a_pass_that_changed_something_says_once_why_it_may() -> None:
    order = PassInfo("join_order", "per change", True, "3 → 3 operators", claim="⋈ is associative")
    groups = PassInfo("groups", "logical", True, "keeps", 2.0, 1.0, "law", "sizes of sources", cost_based=True)
    keys = PassInfo("keys", "logical", True, "keeps", claim="other law", assumes="declared keys")
    idle = PassInfo("idle", "logical", False, "nothing to change", claim="unseen", assumes="unseen")
    assert report_text((order, groups, order, keys, idle)).split("\n") == [
        "✓ join_order (per change): 3 → 3 operators",
        "    claim: ⋈ is associative",
        "✓ groups (logical): keeps; 2.00 s → 1.00 s by the model",
        "    claim: law",
        "    assumes: sizes of sources; decided by cost",
        "✓ join_order (per change): 3 → 3 operators",
        "✓ keys (logical): keeps",
        "    claim: other law",
        "    assumes: declared keys",
        "· idle (logical): nothing to change",
    ]
