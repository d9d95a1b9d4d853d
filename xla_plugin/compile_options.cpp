#include "compile_options.hpp"

#include <utility>

#include "failure.hpp"

namespace ipujax::plugin {
namespace {

// Field numbers: openxla/xla, xla/pjrt/proto/compile_options.proto and xla/xla_data.proto.
constexpr std::uint32_t kExecutableBuildOptions = 3;  // of CompileOptionsProto
constexpr std::uint32_t kDeviceAssignment = 9;        // of ExecutableBuildOptionsProto
constexpr std::uint32_t kReplicaCount = 1;            // of DeviceAssignmentProto
constexpr std::uint32_t kComputationCount = 2;
constexpr std::uint32_t kComputationDevices = 3;
constexpr std::uint32_t kReplicaDeviceIds = 1;  // of DeviceAssignmentProto.ComputationDevice

/// Walks the fields of one protocol buffer message.
class ProtoReader {
 public:
  explicit ProtoReader(std::string_view bytes) : bytes_(bytes) {}

  bool next() {
    if (bytes_.empty()) return false;
    const auto key = readVarint(bytes_);
    field_ = static_cast<std::uint32_t>(key >> 3);
    switch (key & 7) {
      case 0:
        value_ = readVarint(bytes_);
        return true;
      case 1:
        take(8);
        return true;
      case 2:
        text_ = take(readVarint(bytes_));
        return true;
      case 5:
        take(4);
        return true;
      default:
        fail();
    }
  }
  std::uint32_t field() const { return field_; }
  std::uint64_t value() const { return value_; }
  std::string_view text() const { return text_; }

  static std::uint64_t readVarint(std::string_view& bytes) {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (bytes.empty()) fail();
      const auto byte = static_cast<unsigned char>(bytes.front());
      bytes.remove_prefix(1);
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    fail();
  }

 private:
  [[noreturn]] static void fail() {
    failInvalidArgument(
        "[ipu compile] needs serialised CompileOptions; got bytes that are not. "
        "Use the jaxlib version that this release names.");
  }
  std::string_view take(std::uint64_t count) {
    if (count > bytes_.size()) fail();
    const auto taken = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return taken;
  }

  std::string_view bytes_;
  std::uint32_t field_ = 0;
  std::uint64_t value_ = 0;
  std::string_view text_;
};

std::string_view findMessage(std::string_view bytes, std::uint32_t field) {
  std::string_view found;
  for (ProtoReader reader(bytes); reader.next();) {
    if (reader.field() == field) found = reader.text();
  }
  return found;
}

std::vector<int> readIds(std::string_view computation) {
  std::vector<int> ids;
  for (ProtoReader reader(computation); reader.next();) {
    if (reader.field() != kReplicaDeviceIds) continue;
    for (auto packed = reader.text(); !packed.empty();) {
      ids.push_back(static_cast<int>(ProtoReader::readVarint(packed)));
    }
  }
  return ids;
}

void writeVarint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

void writeMessage(std::string& out, std::uint32_t field, const std::string& message) {
  writeVarint(out, field << 3 | 2);
  writeVarint(out, message.size());
  out += message;
}

void writeInteger(std::string& out, std::uint32_t field, int value) {
  writeVarint(out, field << 3);
  writeVarint(out, static_cast<std::uint64_t>(value));
}

}  // namespace

std::string DeviceAssignment::serialise() const {
  std::string out;
  writeInteger(out, kReplicaCount, num_replicas);
  writeInteger(out, kComputationCount, num_partitions);
  for (int partition = 0; partition < num_partitions; ++partition) {
    std::string ids;
    for (int replica = 0; replica < num_replicas; ++replica) {
      writeVarint(ids,
                  static_cast<std::uint64_t>(
                      device_ids[static_cast<std::size_t>(replica * num_partitions + partition)]));
    }
    std::string computation;
    writeMessage(computation, kReplicaDeviceIds, ids);
    writeMessage(out, kComputationDevices, computation);
  }
  return out;
}

DeviceAssignment readDeviceAssignment(std::string_view compile_options,
                                      std::span<const std::int32_t> default_devices) {
  const auto message =
      findMessage(findMessage(compile_options, kExecutableBuildOptions), kDeviceAssignment);
  if (message.empty()) {
    return {1,
            static_cast<int>(default_devices.size()),
            {default_devices.begin(), default_devices.end()}};
  }
  DeviceAssignment assignment;
  std::vector<std::vector<int>> columns;  // one per partition
  for (ProtoReader reader(message); reader.next();) {
    if (reader.field() == kReplicaCount) {
      assignment.num_replicas = static_cast<int>(reader.value());
    } else if (reader.field() == kComputationCount) {
      assignment.num_partitions = static_cast<int>(reader.value());
    } else if (reader.field() == kComputationDevices) {
      columns.push_back(readIds(reader.text()));
    }
  }
  const auto replicas = static_cast<std::size_t>(assignment.num_replicas);
  bool whole = columns.size() == static_cast<std::size_t>(assignment.num_partitions);
  for (const auto& column : columns) whole = whole && column.size() == replicas;
  if (!whole || replicas == 0 || columns.empty()) {
    failInvalidArgument(
        "[ipu compile] needs one device per replica and partition; got a device "
        "assignment with gaps.");
  }
  for (std::size_t replica = 0; replica < replicas; ++replica) {
    for (const auto& column : columns) assignment.device_ids.push_back(column[replica]);
  }
  return assignment;
}

}  // namespace ipujax::plugin
