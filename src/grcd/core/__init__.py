"""What everybody may use and that knows nothing of signals: errors, files, devices, random numbers, rows."""
