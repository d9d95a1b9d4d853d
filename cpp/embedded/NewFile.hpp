#pragma once
#include <filesystem>
#include <string>

namespace ipujax::embedded {

/// A file that takes the place of another when it is complete, and is on the disk by then.
///
/// Until then it has no name, so that a process that is killed leaves nothing behind. File systems
/// without such files have it under a name that ends in `.ipujax-partial`, and locked: the next new
/// file of the folder removes those whose lock is free. Functions throw std::system_error.
class NewFile {
 public:
  explicit NewFile(const std::filesystem::path& path);
  ~NewFile() { discard(); }
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  int descriptor() const { return file_; }
  void keep();
  void discard() noexcept;  ///< nothing, once it is kept

 private:
  bool createNameless();
  void createNamed();
  std::string unusedName() const;

  const std::string target_;  // in its folder
  int folder_ = -1;
  int file_ = -1;
  std::string name_;  // until it is kept; empty: none
};

}  // namespace ipujax::embedded
