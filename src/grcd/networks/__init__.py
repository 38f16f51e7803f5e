"""The table of networks: a name, and the class behind it. All take the same sizes, and answer ``f_theta(x, t)``."""

from .gnn import DenoiserGNN
from .nodenet import NodeNet

# The paper's, shared over nodes; the one that knows its nodes.
NETWORKS: dict[str, type[DenoiserGNN | NodeNet]] = {"gnn": DenoiserGNN, "node": NodeNet}
