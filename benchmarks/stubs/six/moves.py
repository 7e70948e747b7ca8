"""Names of Python 3 under those of six."""

import urllib.error
import urllib.parse
import urllib.request  # noqa: F401
