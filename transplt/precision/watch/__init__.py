"""`transplt anomalies`: the watch points of the tuning guide over the steps of a dump."""
