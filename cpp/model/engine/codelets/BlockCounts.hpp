#pragma once
#include <string>

namespace ipujax::engine {

/// Preprocessed C++ in which each block of the user's code (and not of system headers) first calls
/// ipujax_cycles::ran() with the issue slots of its own operations: one for each subscript, load,
/// store and arithmetic operation of the source, 20 for each division or mathematical function, and
/// one more for the body of a loop. Line numbers do not change.
///
///     for (int i = 0; i < n; ++i) a[i] = x * 2;
///     for (int i = 0; i < n; ++i) {::ipujax_cycles::ran(3);a[i] = x * 2;}
std::string withBlockCounts(const std::string& preprocessed);

}  // namespace ipujax::engine
