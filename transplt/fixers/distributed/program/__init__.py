"""What `distributed` asks of a training program, beyond what others ask: what its ranks do alike or apart."""
