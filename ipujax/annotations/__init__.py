"""What a traced program says of its operations: where they come from, and where they go."""
