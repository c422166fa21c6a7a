"""What refreshes of a session have observed; no result depends on it.

In come cardinalities and failed strategies as refreshes report them. Out go expectations for the next refresh.
"""
