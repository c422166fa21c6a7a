"""The verbs, a file per group.

In come parsed options; each verb calls one action of the API and hands its result to a renderer.
"""
