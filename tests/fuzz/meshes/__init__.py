"""Random programs over meshes: sharded, replicated, unreduced and reduced values."""
