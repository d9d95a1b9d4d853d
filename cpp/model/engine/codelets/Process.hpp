#pragma once
#include <string>
#include <vector>

namespace ipujax::engine {

/// How a process ended, and all that it wrote.
struct Finished {
  int exit_code = 0;  ///< negative: the signal that ended it
  std::string output;
};

/// Runs a program, found in PATH, to its end, without a shell: arguments reach it as they are.
/// Throws std::system_error if it cannot be started.
Finished runProcess(const std::vector<std::string>& arguments);

/// The words of a line of arguments: separated by blanks; quotes, single or double, keep blanks.
std::vector<std::string> splitArguments(const std::string& line);

}  // namespace ipujax::engine
