#pragma once
#include <cstddef>
#include <filesystem>

#include "engine/VertexAbi.hpp"

namespace ipujax::engine {

/// Static variables of codelets. Constructors of those outside of functions are code of codelets
/// like any other, so the loader, which would hold its lock meanwhile, does not run them.

/// Makes the loader of a library, an ELF file, run no constructors and no destructors. Throws
/// link_error where it is none.
void hideConstructors(const std::filesystem::path& library);

/// Runs the constructors that were hidden in a loaded library, in their order.
void runConstructors(void* handle);

/// What libraries call around the constructors of static variables in functions. A guarded call
/// that ends in one lets go of it, so that the next one constructs it anew.
const IpujaxStatics* statics();

/// How many this thread constructs; lets go of those behind the first `count`.
std::size_t numConstructed();
void letGo(std::size_t count);

}  // namespace ipujax::engine
