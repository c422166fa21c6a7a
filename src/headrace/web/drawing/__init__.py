"""Pictures as SVG: the graph, charts of the history, and a run.

In come names, numbers and moments; out goes markup in which every text is escaped. Styles are classes of the page's
style sheet, so that dark and light are its business.
"""
