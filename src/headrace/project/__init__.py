"""The project folder: its settings file, what it declares, and whether everything needed is there.

In comes a folder or `headrace.toml`. Out go a new project, declared objects compared with existing ones, and the
doctor's checks.
"""
