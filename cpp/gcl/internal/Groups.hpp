#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/Attributes.hpp"
#include "engine/verify/StepCheck.hpp"

namespace gcl {

/// Replicas that meet: [group][member].
using Groups = std::vector<std::vector<unsigned>>;

/// Checks that the groups name each of `num_replicas` replicas at most once (with `all`, once) and,
/// with `equal`, that all are of one size. Throws poplar::poplar_error that says what is wrong.
void checkGroups(const char* where, const Groups& groups, unsigned num_replicas, bool all,
                 bool equal);

/// Groups as attributes "groups" and "sizes" of a step.
void setGroups(ipujax::engine::Attributes& attributes, const Groups& groups);
Groups groupsOf(const ipujax::engine::Attributes& attributes);
/// The groups of a step: replicas of its program. `once`: none is in two of them.
Groups checkedGroups(const ipujax::engine::StepCheck& check, bool once);

}  // namespace gcl
