"""Estimates what a refresh costs in either mode and chooses between them.

In come the facts of a refresh, the derived program and the table's calibration. Out goes a `Choice` of FULL or
DIFFERENTIAL with its reason and both estimates. Door: `mode_choice`.
"""
