#pragma once
#include <map>
#include <utility>

#include "engine/Cost.hpp"
#include "engine/Machine.hpp"

namespace ipujax::engine {

/// Bytes by the IPU that sends and the one that receives.
using LinkBytes = std::map<std::pair<unsigned, unsigned>, double>;

/// Adds bytes sent between IPUs at one time: the IPUs meet before and after.
void addLinkTransfer(Cost& cost, const System& system, const LinkBytes& sent);

}  // namespace ipujax::engine
