#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "poplar/ProfileValue.hpp"
#include "poplar/StringRef.hpp"

namespace ipujax::engine {
class DebugContext;
}

namespace poplar {

/// Identifies a DebugInfo; 0 means none.
using DebugId = std::uint64_t;

/// A place in a program's source. Its strings are the compiler's and live as long as the program.
class SourceLocation {
 public:
  constexpr SourceLocation() = default;
  constexpr SourceLocation(const char* functionName, const char* fileName, unsigned lineNumber)
      : function_(functionName), file_(fileName), line_(lineNumber) {}
  /// The place of the call; as a default argument, the place where the function is called.
  static constexpr SourceLocation Current(const char* functionName = __builtin_FUNCTION(),
                                          const char* fileName = __builtin_FILE(),
                                          unsigned lineNumber = __builtin_LINE()) {
    return {functionName, fileName, lineNumber};
  }
  StringRef getFunctionName() const { return function_; }
  StringRef getFileName() const { return file_; }
  unsigned getLineNumber() const { return line_; }
  bool isValid() const { return file_ != nullptr; }

 private:
  const char* function_ = nullptr;
  const char* file_ = nullptr;
  unsigned line_ = 0;
};

class DebugInfo;

/// A name below a parent's name, and the parent's id.
class DebugNameAndId {
 public:
  DebugNameAndId(std::string name = "", DebugId debugId = {},  // NOLINT: implicit as in the SDK
                 std::string parentPath = "");
  DebugNameAndId(const char* name) : DebugNameAndId(std::string(name)) {}  // NOLINT
  DebugNameAndId(DebugId debugId) : DebugNameAndId("", debugId) {}         // NOLINT
  DebugNameAndId(const DebugInfo& debugInfo, std::string name = "");       // NOLINT
  DebugNameAndId(const DebugNameAndId& parent, std::string name);
  std::string getPathName() const { return path_; }
  const std::string& getName() const { return name_; }
  DebugId getParentId() const { return parent_; }

 private:
  std::string name_;
  std::string path_;  ///< with the parents' names, joined with '/'
  DebugId parent_ = 0;
};

/// The name of a new object, nested with '/', and the place in the source that asked for it.
class DebugContext {
 public:
  DebugContext(SourceLocation location = SourceLocation::Current())  // NOLINT: as in the SDK
      : location_(location) {}
  DebugContext(const char* name, SourceLocation location = SourceLocation::Current())  // NOLINT
      : name_(name), location_(location) {}
  DebugContext(StringRef name, SourceLocation location = SourceLocation::Current())  // NOLINT
      : name_(name.data(), name.size()), location_(location) {}
  DebugContext(std::string name, SourceLocation location = SourceLocation::Current())  // NOLINT
      : name_(std::move(name)), location_(location) {}
  DebugContext(const DebugInfo& debugInfo, std::string name = "",  // NOLINT
               SourceLocation location = SourceLocation::Current());
  DebugContext(const DebugNameAndId& parent, std::string name = "",  // NOLINT
               SourceLocation location = SourceLocation::Current());
  /// A name below another context's name, with the same source location.
  DebugContext(const DebugContext& parent, std::string_view name);

  std::string getPathName() const { return name_; }
  DebugId getParentId() const { return parent_; }
  const SourceLocation& getLocation() const { return location_; }

  /// For the library: the user's line if it is not in C++ source, such as "file.py:31".
  DebugContext withSource(std::string source) const;
  const std::string& source() const { return source_; }
  operator ipujax::engine::DebugContext() const;  // NOLINT: what the engine keeps

 private:
  std::string name_;
  std::string source_;
  SourceLocation location_;
  DebugId parent_ = 0;
};

/// File format of DebugInfo records.
enum class DebugSerializationFormat { JSON, CBOR };

/// Records one call: its API function, source location and values. While a streamer is open, each
/// DebugInfo is added to the streamer's file when it is destroyed.
class DebugInfo {
 public:
  DebugInfo(const DebugContext& debugContext, std::string api);
  DebugInfo(const DebugInfo&) = delete;
  DebugInfo& operator=(const DebugInfo&) = delete;
  virtual ~DebugInfo();

  DebugId getId() const;
  std::string getPathName() const;
  /// Returns false, and keeps the old value, if `name` already has one.
  bool setValue(std::string name, ProfileValue value);

  /// Opens the file for all records; throws poplar_error if it cannot be written.
  static void initializeStreamer(
      const std::string& fileName,
      const DebugSerializationFormat& format = DebugSerializationFormat::CBOR);
  /// Writes the records and closes the file.
  static void closeStreamer();

 private:
  struct Record;
  std::unique_ptr<Record> record_;
};

}  // namespace poplar
