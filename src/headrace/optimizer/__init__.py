"""Optimises query trees and derived programs.

In comes algebra, or a program with its steps. Out goes an equal one that reads and computes less; `passes` lists the
passes in order.
"""
