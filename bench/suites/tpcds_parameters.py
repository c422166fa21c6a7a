"""What is replaced in single queries of TPC-DS, so that they have rows at a small scale: constants and bounds only."""

from __future__ import annotations

_PRICES = (
    ("BETWEEN 100.00 AND 150.00", "BETWEEN 0.00 AND 150.00"),
    ("BETWEEN 50.00 AND 100.00", "BETWEEN 0.00 AND 100.00"),
    ("BETWEEN 150.00 AND 200.00", "BETWEEN 0.00 AND 200.00"),
    ("BETWEEN 100 AND 200", "BETWEEN -5000 AND 5000"),
    ("BETWEEN 150 AND 300", "BETWEEN -5000 AND 5000"),
    ("BETWEEN 50 AND 250", "BETWEEN -5000 AND 5000"),
)

PARAMETERS: dict[str, tuple[tuple[str, str], ...]] = {
    "q4": (("2001", "1999"),),
    "q8": (("HAVING COUNT(*) > 10", "HAVING COUNT(*) > 1"),),
    "q13": _PRICES,
    "q16": (("'2002-02-01'", "'1999-02-01'"),),
    "q23": (("HAVING COUNT(*) > 4", "HAVING COUNT(*) > 1"),),
    "q24": (("s_market_id = 8", "s_market_id >= 5"),),
    "q25": (("d1.d_moy = 4", "d1.d_moy >= 1"),),
    "q27": (("cd_marital_status = 'S'", "cd_marital_status >= 'M'"),),
    "q34": (("BETWEEN 15 AND 20", "BETWEEN 1 AND 20"),),
    "q38": (("BETWEEN 1200 AND 1200 + 11", "BETWEEN 1176 AND 1176 + 59"),),
    "q39": (("stdev / mean END > 1", "stdev / mean END > 0.3"),),
    "q41": (("BETWEEN 738 AND 738 + 40", "BETWEEN 1 AND 1 + 40"),),
    "q49": (("> 10000", "> 100"),),
    "q54": (("i_class = 'maternity'", "i_class > 'a'"),),
    "q58": (("0.9 *", "0.1 *"), ("1.1 *", "10 *")),
    "q64": (
        ("BETWEEN 64 AND 64 + 10", "BETWEEN 0 AND 64 + 1000"),
        ("BETWEEN 64 + 1 AND 64 + 15", "BETWEEN 0 + 1 AND 64 + 1500"),
    ),
    "q69": (("4 + 2", "4 + 0"),),
    "q73": (("d_dom BETWEEN 1 AND 2", "d_dom BETWEEN 1 AND 9"),),
    "q75": (("'Books'", "'Women'"),),
    "q85": _PRICES,
    "q90": (("BETWEEN 8 AND 8 + 1", "BETWEEN 8 AND 8 + 6"), ("BETWEEN 19 AND 19 + 1", "BETWEEN 15 AND 15 + 6")),
    "q91": (
        ("ca_gmt_offset = -7", "ca_gmt_offset = -6"),
        ("'Unknown%'", "'%'"),
        ("d_moy = 11", "d_moy >= 1"),
        ("cd_education_status = 'Unknown'", "cd_education_status <> 'Unknown'"),
    ),
    "q96": (("t_hour = 20", "t_hour >= 8"),),
}
