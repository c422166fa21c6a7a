"""The pages, a module each: what of a project they show.

In come the site and a request's parameters; out go the template's values. `routes.py` lists them.
"""
