"""Figures: one module per part of the argument, one style for all."""
