"""Blue-green deployments, as users call them.

In come names and wishes; out go what a deployment did, or where it stands.
"""
