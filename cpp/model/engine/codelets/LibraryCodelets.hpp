#pragma once
#include <string>

#include "engine/codelets/Codelets.hpp"

namespace ipujax::engine {

/// The codelets of the library in whose namespace a vertex type is, for programs that name such a
/// type: "popnn::ReduceMaxClassSparse<float,unsigned>". They are read once; null for other types.
/// Library functions do not use them: these have kernels.
const CodeletFile* libraryCodelets(const std::string& type);

}  // namespace ipujax::engine
