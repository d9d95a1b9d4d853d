#pragma once
#include <cstdint>
#include <vector>

#include "engine/Attributes.hpp"
#include "engine/image/StepCheck.hpp"

namespace ipujax::engine::collective {

/// Replicas that meet: [group][member].
using Groups = std::vector<std::vector<unsigned>>;

/// Stores groups in the attributes "groups" and "sizes" of a step.
void setGroups(Attributes& attributes, const Groups& groups);
Groups groupsOf(const Attributes& attributes);
/// The groups of a step, checked to be replicas of its program; with `once`, none is in two groups.
Groups checkedGroups(const StepCheck& check, bool once);

}  // namespace ipujax::engine::collective
