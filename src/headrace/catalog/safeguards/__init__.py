"""Gates and watermark groups as rows of the catalog.

In come what users hold back or declare complete. Out go the limits that a cut must respect.
"""
