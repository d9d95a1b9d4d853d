"""Programs for single tiles: arrays whose rows are on chosen tiles, and vertices that run there."""

from ipujax.host.module_help import with_names as _with_names
from ipujax.tile.arrays import TileArray as TileArray
from ipujax.tile.arrays import barrier as barrier
from ipujax.tile.arrays import gather as gather
from ipujax.tile.arrays import put_replicated as put_replicated
from ipujax.tile.arrays import put_sharded as put_sharded
from ipujax.tile.mapping import map as map
from ipujax.tile.vertex import Vertex as Vertex
from ipujax.tile.vertex import create_vertex as create_vertex

#: In the order of the guide.
__all__ = [
    "TileArray",
    "Vertex",
    "barrier",
    "create_vertex",
    "gather",
    "map",
    "put_replicated",
    "put_sharded",
]

__doc__ = _with_names(globals())
