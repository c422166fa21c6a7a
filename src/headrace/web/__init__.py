"""A page to look at a project: server-rendered, live, closed to others.

In come a project's settings and requests of browsers; out go HTML and SVG. Everything shown comes from the catalog, so
that looking starts no Spark; buttons, where they are on, run the project's commands by its server.
"""
