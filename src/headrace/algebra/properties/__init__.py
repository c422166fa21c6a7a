"""Relational properties: what is known of a relation's rows without computing them.

In come relations, and what is known of sources and of types; out go equalities of columns (`equalities`), keys
(`keys`), dependencies between columns (`dependencies`), and whether rows have one order (`order`). Reader, compiler,
delta rules, passes and the cost model ask here, so none infers a second time.
"""
