"""Files: a module a format, and the tables of what is read and written by which ending."""
