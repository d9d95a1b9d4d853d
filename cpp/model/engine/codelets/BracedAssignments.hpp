#pragma once
#include <string>

namespace ipujax::engine {

/// C++ in which lists in braces that are assigned have the type of what they are assigned to, since
/// GCC gives them none where that is a vector of the compiler. Lines stay where they are.
///
///     x = {a, b};
///     x = std::decay_t<decltype(x)>{a, b};
std::string withTypedBraces(const std::string& text);

/// Whether this is why a compiler refused a source.
bool wantsTypedBraces(const std::string& message);

}  // namespace ipujax::engine
