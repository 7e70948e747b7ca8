"""The one part of six that scripts take."""
