"""What a person does to finish a port: findings that leave work, each in one action, ranked by what they block."""
