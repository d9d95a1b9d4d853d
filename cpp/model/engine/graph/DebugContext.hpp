#pragma once
#include <string>
#include <string_view>

namespace ipujax::engine {

/// A name for what is being made, nested with '/'. The model also carries the user's source line.
class DebugContext {
 public:
  DebugContext() = default;
  DebugContext(const char* name) : name_(name) {}             // NOLINT: implicit as in the SDK
  DebugContext(std::string_view name) : name_(name) {}        // NOLINT
  DebugContext(std::string name) : name_(std::move(name)) {}  // NOLINT
  DebugContext(const DebugContext& parent, std::string_view name)
      : name_(parent.name_.empty() ? std::string(name) : parent.name_ + "/" + std::string(name)),
        source_(parent.source_) {}

  std::string getPathName() const { return name_; }
  /// "file.py:31"; not part of the SDK's API, which keeps it in its debug info.
  const std::string& source() const { return source_; }
  DebugContext withSource(std::string source) const {
    DebugContext copy = *this;
    copy.source_ = std::move(source);
    return copy;
  }

 private:
  std::string name_;
  std::string source_;
};

}  // namespace ipujax::engine
