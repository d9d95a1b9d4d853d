#pragma once
#include "popx/Native.hpp"

namespace popx {

/// gcl's collectives over groups that no gcl::CommGroup can say.
using gcl::groups::allGather;
using gcl::groups::allGatherToDestination;
using gcl::groups::allReduce;
using gcl::groups::allReduceToDestination;
using gcl::groups::allToAll;
using gcl::groups::allToAllToDestination;
using gcl::groups::broadcast;
using gcl::groups::collectivePermute;
using gcl::groups::collectivePermuteToDestination;
using gcl::groups::reduceScatter;
using gcl::groups::ReplicaGroups;

}  // namespace popx
