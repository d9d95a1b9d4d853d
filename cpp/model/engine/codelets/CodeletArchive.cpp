#include "engine/codelets/CodeletArchive.hpp"

#include <cstdint>
#include <span>
#include <stdexcept>

#include "engine/Errors.hpp"
#include "engine/Serial.hpp"

namespace ipujax::engine {
namespace {

const std::string kMagic = "ipujax codelets 2\n";

std::uint64_t checksum(std::string_view bytes) {  // FNV-1a: detects accidents
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

}  // namespace

std::string writeArchive(const CodeletArchive& archive) {
  Writer body;
  body.list(archive.sources, 24, [&](const ArchivedSource& s) { body(s.name, s.text, s.flags); });
  body.list(archive.libraries, 16, [&](const ArchivedLibrary& l) { body(l.key, l.code); });
  const std::string bytes = body.take();
  Writer sealed;
  sealed.put(checksum(bytes));
  sealed.raw(bytes.data(), bytes.size());
  return kMagic + sealed.take();
}

CodeletArchive readArchive(const std::string& content, const std::string& path) {
  const auto refuse = [&](const char* got) -> file_load_error {
    return file_load_error("[Graph::addCodelets] needs a .gp file of the IPU Model's popc; got " +
                           path + ", " + got + ". Compile its sources with this popc.");
  };
  if (!content.starts_with(kMagic)) throw refuse("which another compiler made");
  const std::string rest = content.substr(kMagic.size());
  try {
    Reader sealed(std::as_bytes(std::span(rest)));
    const auto expected = sealed.get<std::uint64_t>();
    if (checksum(std::string_view(rest).substr(sizeof(expected))) != expected)
      throw refuse("which is damaged");
    CodeletArchive archive;
    sealed.list(archive.sources, 24, [&](ArchivedSource& s) { sealed(s.name, s.text, s.flags); });
    sealed.list(archive.libraries, 16, [&](ArchivedLibrary& l) { sealed(l.key, l.code); });
    return archive;
  } catch (const std::out_of_range&) {
    throw refuse("which is damaged");
  }
}

}  // namespace ipujax::engine
