#include "xspace.hpp"

#include <bit>

namespace ipujax::plugin::xspace {
namespace {

/// Writes a protocol buffer message field by field (protobuf.dev, "Encoding").
class Message {
 public:
  void integer(unsigned field, std::int64_t value) {
    varint(field << 3);
    varint(static_cast<std::uint64_t>(value));
  }
  void real(unsigned field, double value) {
    varint(field << 3 | 1);
    const auto bits = std::bit_cast<std::uint64_t>(value);
    for (unsigned i = 0; i < 64; i += 8) bytes_ += static_cast<char>(bits >> i & 0xff);
  }
  void text(unsigned field, std::string_view value) {
    varint(field << 3 | 2);
    varint(value.size());
    bytes_ += value;
  }
  void message(unsigned field, const Message& value) { text(field, value.bytes_); }
  std::string take() { return std::move(bytes_); }

 private:
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>((value & 0x7f) | 0x80);
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

enum StatId : std::int64_t { kCycles = 1, kSource = 2 };

/// Numbers the names of events, as a plane lists them.
class Names {
 public:
  std::int64_t idOf(std::string_view name) {
    return ids_.try_emplace(name, static_cast<std::int64_t>(ids_.size()) + 1).first->second;
  }
  void write(Message& plane) const {
    for (const auto& [name, id] : ids_) entry(plane, 4, id, name);
    entry(plane, 5, kCycles, "cycles");
    entry(plane, 5, kSource, "source");
  }

 private:
  /// One entry of a map from a number to its metadata.
  static void entry(Message& plane, unsigned field, std::int64_t id, std::string_view name) {
    Message metadata;
    metadata.integer(1, id);
    metadata.text(2, name);
    Message entry;
    entry.integer(1, id);
    entry.message(2, metadata);
    plane.message(field, entry);
  }

  std::map<std::string_view, std::int64_t> ids_;
};

Message messageOf(const Event& event, Names& names) {
  Message message;
  message.integer(1, names.idOf(event.name));
  message.integer(2, event.offset_picoseconds);
  message.integer(3, event.picoseconds);
  Message cycles;
  cycles.integer(1, kCycles);
  cycles.real(2, event.cycles);
  message.message(4, cycles);
  if (!event.source.empty()) {
    Message source;
    source.integer(1, kSource);
    source.text(5, event.source);
    message.message(4, source);
  }
  return message;
}

Message messageOf(const Line& line, std::int64_t id, Names& names) {
  Message message;
  message.integer(1, id);
  message.text(2, line.name);
  message.integer(3, line.begin_nanoseconds);
  for (const Event& event : line.events) message.message(4, messageOf(event, names));
  return message;
}

Message messageOf(const Plane& plane, std::int64_t id) {
  Message message;
  message.integer(1, id);
  message.text(2, plane.name);
  Names names;
  std::int64_t line_id = 0;
  for (const Line& line : plane.lines) message.message(3, messageOf(line, ++line_id, names));
  names.write(message);
  return message;
}

}  // namespace

std::string serialise(const std::vector<Plane>& planes, const std::vector<std::string>& warnings) {
  Message space;
  std::int64_t id = 0;
  for (const Plane& plane : planes) space.message(1, messageOf(plane, ++id));
  for (const std::string& warning : warnings) space.text(3, warning);
  return space.take();
}

}  // namespace ipujax::plugin::xspace
