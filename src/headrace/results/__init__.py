"""Frozen results that users are given: of refreshing, verifying, explaining, landing.

In come values of the rooms above that fill them. Out go records that print themselves and become JSON.
"""
