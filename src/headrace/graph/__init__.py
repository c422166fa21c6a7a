"""The graph of stream tables and their sources, by who reads whom.

In come names with what each reads; out go orders, cycles, diamonds, units and pictures. Pure. Door: `Dag`.
"""

from headrace.graph.dag import Dag
from headrace.graph.render import as_dict, as_dot, as_levels, as_mermaid, as_text

__all__ = ["Dag", "as_dict", "as_dot", "as_levels", "as_mermaid", "as_text"]
