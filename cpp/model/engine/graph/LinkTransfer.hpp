#pragma once
#include <map>
#include <utility>

#include "engine/Cost.hpp"
#include "engine/Machine.hpp"

namespace ipujax::engine {

/// Bytes by sending and receiving IPU.
using LinkBytes = std::map<std::pair<unsigned, unsigned>, double>;

/// Adds bytes sent between IPUs at the same time; the IPUs sync before and after.
void addLinkTransfer(Cost& cost, const System& system, const LinkBytes& sent);

}  // namespace ipujax::engine
