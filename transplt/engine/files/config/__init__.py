"""Configuration files: YAML, JSON, TOML, INI and files of variables."""
