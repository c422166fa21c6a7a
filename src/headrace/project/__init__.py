"""The project folder: settings file, declarations, and checks of the environment.

In comes a folder or `headrace.toml`. Out go a new project, declared objects compared with existing ones, and the
doctor's checks.
"""
