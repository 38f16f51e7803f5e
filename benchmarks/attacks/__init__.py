"""Ways to attack the package, a module each; `benchmarks/attack.py` runs them.

A module has `cases(stage, random)`, the attacks as plain tuples whose first entry is their name, and `attack(stage,
case, folder)`, which carries one out in an empty folder and returns a verdict: what it is (`GOOD` or `BAD` of
`verdict`), and what was seen.
"""
