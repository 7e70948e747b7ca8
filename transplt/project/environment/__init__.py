"""An environment for a project: what it asks for, and how that is installed without a GPU."""
