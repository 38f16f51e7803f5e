"""The table of networks: a name, and the class behind it. All take the same sizes, and answer ``f_theta(x, t)``."""

from .backbone import DenoiserGNN
from .nodenet import NodeNet

NETWORKS = {"gnn": DenoiserGNN, "node": NodeNet}  # the paper's, shared over nodes; the one that knows its nodes
