#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace ipujax::engine {

/// A source of codelets that needs no file but the compiler's own and the model's: with what it
/// includes from beside `path` in it, and the model's prelude. Throws file_load_error.
std::string wholeText(const std::string& text, const std::string& path);

/// What a line of preprocessed text says of the lines after it: whether they are a system header's
/// (flag 3 of a line marker). None for a line that is no marker, and for one that neither enters a
/// file nor returns to it: GCC gives flag 3 to what macros of system headers expand to, too.
std::optional<bool> beginsSystemHeader(std::string_view line);

/// Whether a text names the IPU's own functions, by themselves or by their headers.
bool usesIntrinsics(const std::string& text);

/// Whether workers of a vertex might wait for what others write: by what makes a compiler read
/// memory again, or a header that the text does not have.
bool workersMayWait(const std::string& text);

/// Whether its codelets may draw random numbers.
bool drawsNumbers(const std::string& text);

/// Whether it names loads and stores that move their pointers.
bool movesPointers(const std::string& text);

}  // namespace ipujax::engine
