#pragma once
#include <string>
#include <vector>

namespace ipujax::engine {

/// The worker cycles that a codelet's source lets expect for one element, of which the model has no
/// other account: the operations in its innermost loop (the most expensive one of these), and one
/// for the loop, divided by the elements of the short vectors that it names. Loads, stores and
/// arithmetic count one cycle, divisions and mathematics kMathCycles. 0 where there is no loop.
double loopCycles(const std::vector<std::string>& tokens);

/// Of one token of these; 0 for other tokens.
double operationCycles(const std::string& token);

}  // namespace ipujax::engine
