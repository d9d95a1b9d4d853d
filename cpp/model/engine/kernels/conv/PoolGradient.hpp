#pragma once

namespace ipujax::engine {

/// The numbers are part of the executable format.
enum class PoolingType { MAX, AVG, SUM };

}  // namespace ipujax::engine
