#include "hosts/Frame.hpp"

#include <algorithm>
#include <cstring>

#include "hosts/PeerError.hpp"

namespace ipujax::hosts {
namespace {

constexpr std::uint32_t kMagic = 0x31554a49;  // raised with each change of the layout
enum Kind : std::uint32_t { kMeets = 0, kFails = 1 };

struct Header {
  std::uint32_t magic;
  Kind kind;
  std::uint64_t program;
  std::uint64_t number;
  std::uint64_t bytes;
  std::uint64_t text_size;
};
constexpr std::size_t kMostText = Frame::kBytes - sizeof(Header);
constexpr std::size_t kMostName = kMostText - Frame::kMostInline;

std::array<std::byte, Frame::kBytes> frameOf(Header header, const std::string& text,
                                             std::size_t most) {
  std::array<std::byte, Frame::kBytes> raw{};
  header.text_size = std::min(text.size(), most);
  std::memcpy(raw.data(), &header, sizeof header);
  std::memcpy(raw.data() + sizeof header, text.data(), header.text_size);
  return raw;
}

}  // namespace

Frame::Frame(const Position& position, std::uint64_t bytes)
    : raw_(frameOf({kMagic, kMeets, position.program, position.number, bytes, 0}, position.name,
                   kMostName)) {}

Frame Frame::failure(const std::string& reason) {
  Frame frame;
  frame.raw_ = frameOf({kMagic, kFails, 0, 0, 0, 0}, reason, kMostText);
  return frame;
}

void Frame::check(std::uint32_t sender, std::uint32_t self, const Position& own,
                  std::uint64_t bytes) const {
  Header header;
  std::memcpy(&header, raw_.data(), sizeof header);
  if (header.magic != kMagic) {
    throw PeerError("[hosts] needs messages of this version of ipujax; got others from process " +
                    std::to_string(sender) + ". Install the same version everywhere.");
  }
  const std::string text(reinterpret_cast<const char*>(raw_.data()) + sizeof header,
                         std::min<std::uint64_t>(header.text_size, kMostText));
  if (header.kind == kFails) throw PeerError(text);
  const bool is_same =
      header.program == own.program && header.number == own.number && header.bytes == bytes;
  if (is_same) return;
  throw PeerError("[hosts] needs all processes to run the same programs in the same order; got " +
                  own.name + " on process " + std::to_string(self) + " and " + text +
                  " on process " + std::to_string(sender) +
                  (text == own.name ? ", which differ in other parts" : "") +
                  ". Call the same functions on arrays of the same shapes in every process.");
}

}  // namespace ipujax::hosts
