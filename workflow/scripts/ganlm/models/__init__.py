"""Architectures, one module each: a change to one model touches no other."""
