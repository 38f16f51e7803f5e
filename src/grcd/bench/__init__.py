"""The benchmark: suites of cells, each computed once, and the tables they make.

grcd bench run quick                                     two cores, twenty minutes
grcd bench run main --settings sbm-c16 --seeds 0,1,2 --device cuda
grcd bench table main --format md
"""
