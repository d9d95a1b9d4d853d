"""Where the operations of a traced program come from, and where they are placed."""
