#pragma once
#include <filesystem>
#include <string>

namespace ipujax::embedded {

/// A file that replaces another once it is complete and on the disk.
///
/// Until then it has no name, so that a killed process leaves nothing behind. On file systems
/// without such files it is locked and has a name that ends in `.ipujax-partial`: the next new file
/// in the folder removes those whose lock is free. Functions throw std::system_error.
class NewFile {
 public:
  explicit NewFile(const std::filesystem::path& path);
  ~NewFile() { discard(); }
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  int descriptor() const { return file_; }
  void keep();
  void discard() noexcept;  ///< does nothing once it is kept

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
