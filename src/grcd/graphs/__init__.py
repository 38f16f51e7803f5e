"""The graph, its spectrum, weights from edges, positions or distances; the space that signals live in."""
