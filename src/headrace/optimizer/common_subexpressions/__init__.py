"""Computes once what several steps or several stream tables would compute.

In come the steps of one or more programs. Out go programs whose common parts are steps of their own.
"""
