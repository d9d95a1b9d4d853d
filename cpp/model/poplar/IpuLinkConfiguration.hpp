#pragma once

namespace poplar {

/// How IPUs route data to IPUs that are not their neighbours.
enum class IpuLinkConfiguration { Default, SlidingWindow, BarleyTwist };

/// Topology of the links between IPUs.
enum class IpuLinkTopology { Mesh, Torus, Line };

}  // namespace poplar
