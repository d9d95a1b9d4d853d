#pragma once

namespace poplar {

/// Scope of a synchronisation.
enum class SyncType {
  INTERNAL,  ///< the tiles of each IPU
  EXTERNAL,  ///< the tiles of all IPUs
  GLOBAL,    ///< all IPUs and the host
};

}  // namespace poplar
