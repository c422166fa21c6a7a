"""One refresh: cut, facts, choice, run, publish; for one stream table or a group.

In come names and the catalog; runners come as protocols (`headrace.ports`). Out go `RefreshResult`s and one
publication, or an error with nothing published. Door: `refresher`.
"""
