"""The command of runs: flags, runs and their folders, processes, tuning and results tables."""
