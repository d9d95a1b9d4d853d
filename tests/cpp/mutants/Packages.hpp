#pragma once
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "mutants/Runner.hpp"

namespace mutants {

/// Writes a file like ipujax.precompile, but alters its program, its description, the bytes of its
/// header (with a matching seal), or any bytes. The same number gives the same file.
void writePackage(const std::filesystem::path& path, const std::vector<std::string>& corpus,
                  std::uint64_t number);

/// Opens the file as a session, runs it twice and changes what it stores in between.
Outcome runPackage(const std::filesystem::path& path, std::chrono::milliseconds bound,
                   std::string& reason);

}  // namespace mutants
