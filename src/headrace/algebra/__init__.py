"""The relational algebra: frozen, typed nodes over bags of rows.

In come relations and scalars that a reader or a rule builds; invariants are checked when a node is built. Out go
trees that every room above reads: `relations` (nodes), `scalar` (SQL with facts), `words` and `facts` (below it),
`properties` (keys, equalities, dependencies, order), `tree` (walk and rebuild), `pruned_columns` (read what is used),
`text` (print).
"""
