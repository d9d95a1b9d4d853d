#pragma once
#include <string>
#include <vector>

namespace ipujax::engine {

/// Estimates a codelet's worker cycles per element from its source, for when the model has no other
/// estimate: the operations in its innermost loop (the most expensive one of these), and one for
/// the loop, divided by the elements of the short vectors that it names. Loads, stores and
/// arithmetic count one cycle, divisions and mathematics kMathCycles. 0 if there is no loop.
double loopCycles(const std::vector<std::string>& tokens);

/// The cycles of one such token; 0 for other tokens.
double operationCycles(const std::string& token);

}  // namespace ipujax::engine
