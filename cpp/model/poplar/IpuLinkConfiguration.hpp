#pragma once

namespace poplar {

/// How IPUs use their links to reach IPUs that are not beside them.
enum class IpuLinkConfiguration { Default, SlidingWindow, BarleyTwist };

/// How the links join the IPUs.
enum class IpuLinkTopology { Mesh, Torus, Line };

}  // namespace poplar
