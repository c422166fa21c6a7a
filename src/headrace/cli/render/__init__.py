"""Turns results into Rich renderables; nothing here prints.

In come results of the API; out go Rich renderables for a terminal of any width.
"""
