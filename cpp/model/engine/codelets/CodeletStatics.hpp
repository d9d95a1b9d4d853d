#pragma once
#include <cstddef>
#include <filesystem>

#include "engine/VertexAbi.hpp"

namespace ipujax::engine {

/// Static variables of codelets. Constructors of those outside functions are codelet code like any
/// other, so the loader, which would hold its lock meanwhile, does not run them.

/// Makes the loader of a library, an ELF file, run no constructors and no destructors. Throws
/// link_error if it is not one.
void hideConstructors(const std::filesystem::path& library);

/// Runs the constructors that were hidden in a loaded library, in their order.
void runConstructors(void* handle);

/// The functions that libraries call around constructors of static variables in functions. A
/// guarded call that ends in one releases the variable, so that the next call constructs it anew.
const IpujaxStatics* statics();

/// How many variables this thread is constructing; releases those after the first `count`.
std::size_t numConstructed();
void letGo(std::size_t count);

}  // namespace ipujax::engine
