"""How long the attempts of these tests may take."""

AMPLE = 120.0
"""Seconds for an attempt that is not meant to run out of time, however slow the machine: in their
second half it begins nothing, and the test itself is ended before."""
