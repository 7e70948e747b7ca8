"""A classifier of points in the plane."""

from .mixer import Mixer as Mixer
