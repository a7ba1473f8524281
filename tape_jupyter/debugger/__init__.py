"""Stepping through a cell's calls: where it stops, what may be done there, what is seen there.
Sans-IO: no thread waits in here, nothing is patched, no kernel is known. Who waits and who talks is
notebook/step*.py's.
"""
