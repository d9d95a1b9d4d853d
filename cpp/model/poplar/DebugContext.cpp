#include "poplar/DebugContext.hpp"

#include <atomic>
#include <fstream>
#include <mutex>

#include "engine/SourceText.hpp"
#include "engine/graph/DebugContext.hpp"
#include "poplar/exceptions.hpp"

namespace poplar {
namespace {

std::string join(const std::string& parent, std::string_view name) {
  if (parent.empty() || name.empty()) return parent + std::string(name);
  return parent + "/" + std::string(name);
}

DebugId nextId() {
  static std::atomic<DebugId> last{0};
  return ++last;
}

/// The open file of records. DebugInfos may be destroyed on any thread.
struct Streamer {
  std::mutex mutex;
  std::ofstream file;
  DebugSerializationFormat format = DebugSerializationFormat::CBOR;
  ProfileValue::Vector records;
};

Streamer& streamer() {
  static Streamer instance;
  return instance;
}

}  // namespace

DebugNameAndId::DebugNameAndId(std::string name, DebugId debugId, std::string parentPath)
    : name_(std::move(name)), path_(join(parentPath, name_)), parent_(debugId) {}
DebugNameAndId::DebugNameAndId(const DebugInfo& debugInfo, std::string name)
    : DebugNameAndId(std::move(name), debugInfo.getId(), debugInfo.getPathName()) {}
DebugNameAndId::DebugNameAndId(const DebugNameAndId& parent, std::string name)
    : DebugNameAndId(std::move(name), parent.parent_, parent.path_) {}

DebugContext::DebugContext(const DebugInfo& debugInfo, std::string name, SourceLocation location)
    : name_(join(debugInfo.getPathName(), name)), location_(location), parent_(debugInfo.getId()) {}
DebugContext::DebugContext(const DebugNameAndId& parent, std::string name, SourceLocation location)
    : name_(join(parent.getPathName(), name)), location_(location), parent_(parent.getParentId()) {}
DebugContext::DebugContext(const DebugContext& parent, std::string_view name)
    : name_(join(parent.name_, name)),
      source_(parent.source_),
      location_(parent.location_),
      parent_(parent.parent_) {}

DebugContext DebugContext::withSource(std::string source) const {
  DebugContext copy = *this;
  copy.source_ = std::move(source);
  return copy;
}

DebugContext::operator ipujax::engine::DebugContext() const {
  ipujax::engine::DebugContext context(name_);
  return source_.empty() ? context : context.withSource(source_);
}

struct DebugInfo::Record {
  DebugId id;
  DebugId parent;
  std::string path;
  SourceLocation location;
  std::string api;
  ProfileValue::Map values;
};

DebugInfo::DebugInfo(const DebugContext& debugContext, std::string api)
    : record_(new Record{nextId(),
                         debugContext.getParentId(),
                         debugContext.getPathName(),
                         debugContext.getLocation(),
                         std::move(api),
                         {}}) {}

DebugInfo::~DebugInfo() {
  Streamer& out = streamer();
  const std::lock_guard lock(out.mutex);
  if (!out.file.is_open()) return;
  ProfileValue::Map entry = std::move(record_->values);
  entry["id"] = record_->id;
  entry["parentId"] = record_->parent;
  entry["name"] = record_->path;
  entry["api"] = record_->api;
  if (record_->location.isValid()) {
    entry["location"] =
        ProfileValue::Map{{"functionName", std::string(record_->location.getFunctionName())},
                          {"fileName", std::string(record_->location.getFileName())},
                          {"lineNumber", record_->location.getLineNumber()}};
  }
  out.records.emplace_back(std::move(entry));
}

DebugId DebugInfo::getId() const { return record_->id; }
std::string DebugInfo::getPathName() const { return record_->path; }

bool DebugInfo::setValue(std::string name, ProfileValue value) {
  return record_->values.emplace(std::move(name), std::move(value)).second;
}

void DebugInfo::initializeStreamer(const std::string& fileName,
                                   const DebugSerializationFormat& format) {
  Streamer& out = streamer();
  const std::lock_guard lock(out.mutex);
  out.file.close();
  out.file.clear();
  out.file.open(fileName, std::ios::binary);
  if (!out.file)
    throw poplar_error("[DebugInfo::initializeStreamer] needs a file that can be written; got " +
                       fileName + ". Check the folder and its permissions.");
  out.format = format;
  out.records.clear();
}

void DebugInfo::closeStreamer() {
  Streamer& out = streamer();
  const std::lock_guard lock(out.mutex);
  if (!out.file.is_open()) return;
  const ProfileValue all = ProfileValue::Map{{"contexts", std::move(out.records)}};
  out.records.clear();
  if (out.format == DebugSerializationFormat::JSON) {
    serializeToJSON(out.file, all);
  } else {
    serializeToCBOR(out.file, all);
  }
  out.file.close();
}

void poplar_error::attachSourceLocation(const DebugContext& debugContext) {
  const auto& location = debugContext.getLocation();
  std::string place = ipujax::engine::lineOf(debugContext.source());
  if (place.empty() && location.isValid())
    place = std::string(location.getFileName()) + ":" + std::to_string(location.getLineNumber()) +
            " in " + std::string(location.getFunctionName());
  if (located_ || place.empty()) return;
  located_ = std::make_shared<const std::string>(std::string(what()) + " (at " + place + ")");
}

}  // namespace poplar
