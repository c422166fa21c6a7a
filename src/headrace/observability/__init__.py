"""Status, history and events, for people, hooks and webhooks.

In come the core's events and rows of the catalog. Out go answers of the catalog alone and deliveries that never hold
a refresh up.
"""
