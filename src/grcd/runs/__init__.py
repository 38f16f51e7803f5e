"""Run folders: training kept in one, what lies there, its seals and its lock."""
