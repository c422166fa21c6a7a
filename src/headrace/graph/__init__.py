"""Who reads whom: the graph of stream tables and their sources."""

from headrace.graph.dag import Dag
from headrace.graph.render import as_dict, as_dot, as_levels, as_mermaid, as_text

__all__ = ["Dag", "as_dict", "as_dot", "as_levels", "as_mermaid", "as_text"]
