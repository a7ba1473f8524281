"""What a recording misses, may lose or depends on: gaps, drift of the environment, chance, cold
cases.
"""
