#pragma once

namespace poplar {

/// How far a synchronisation reaches.
enum class SyncType {
  INTERNAL,  ///< the tiles of each IPU
  EXTERNAL,  ///< the tiles of all IPUs
  GLOBAL,    ///< all IPUs and the host
};

}  // namespace poplar
