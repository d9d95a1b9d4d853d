#pragma once
#include <string>

namespace ipujax::engine {

/// C++ in which assigned lists in braces have the type of their target, since GCC gives them none
/// if that is a vector of the compiler. Line numbers do not change.
///
///     x = {a, b};
///     x = std::decay_t<decltype(x)>{a, b};
std::string withTypedBraces(const std::string& text);

/// Whether a compiler refused a source for this reason.
bool wantsTypedBraces(const std::string& message);

}  // namespace ipujax::engine
