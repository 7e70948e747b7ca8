"""From one card to many: what `transplt distributed` adds to a migration."""
