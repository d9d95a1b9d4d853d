#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace ipujax::engine {

/// A source of codelets that needs no files but the compiler's and the model's: with files that it
/// includes from beside `path` inlined, and the model's prelude. Throws file_load_error.
std::string wholeText(const std::string& text, const std::string& path);

/// Whether a line of preprocessed text says that the lines after it are a system header's (flag 3
/// of a line marker). None for a line that is not a marker, and for one that neither enters a file
/// nor returns to it: GCC also gives flag 3 to expansions of system headers' macros.
std::optional<bool> beginsSystemHeader(std::string_view line);

/// Whether a text names the IPU's own functions, by themselves or by their headers.
bool usesIntrinsics(const std::string& text);

/// Whether workers of a vertex might wait for writes of others: whether the text has anything that
/// makes a compiler read memory again, or includes a header that it does not contain.
bool workersMayWait(const std::string& text);

/// Whether its codelets may draw random numbers.
bool drawsNumbers(const std::string& text);

/// Whether it names loads and stores that move their pointers.
bool movesPointers(const std::string& text);

}  // namespace ipujax::engine
