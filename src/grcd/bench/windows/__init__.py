"""The suites of windows: gaps filled (``imputation``) and rows foretold (``forecast``), on public tables and ours.

One network a seed serves every kind of gap of a table, and its forecasts; published ones were trained for one each.
"""
