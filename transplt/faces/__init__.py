"""Where people, agents and editors meet the tool."""
