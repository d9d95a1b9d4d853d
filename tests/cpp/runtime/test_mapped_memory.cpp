#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "Check.hpp"
#include "runtime/MappedMemory.hpp"

using ipujax::runtime::MappedMemory;

namespace {

constexpr std::size_t kPages = 4;
const std::size_t kPageBytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));

/// A mapped file of sevens that nobody else can open.
class File {
 public:
  File() {
    std::string name = std::filesystem::temp_directory_path() / "ipujax-mapped-XXXXXX";
    file_ = mkstemp(name.data());
    unlink(name.c_str());
    const std::string sevens(kPages * kPageBytes, 7);
    if (pwrite(file_, sevens.data(), sevens.size(), 0) < 0) std::abort();
    data_ = static_cast<char*>(
        mmap(nullptr, sevens.size(), PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0));
  }
  ~File() {
    munmap(data_, kPages * kPageBytes);
    close(file_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  volatile char* page(std::size_t i) { return data_ + i * kPageBytes; }
  const void* data() const { return data_; }
  void truncate(std::size_t pages) {
    if (ftruncate(file_, static_cast<off_t>(pages * kPageBytes)) != 0) std::abort();
  }

 private:
  int file_;
  char* data_;
};

}  // namespace

TEST(pages_of_a_truncated_file_are_zeros) {
  File file;
  const MappedMemory memory(file.data(), kPages * kPageBytes);
  CHECK_EQ(int{*file.page(3)}, 7);
  file.truncate(2);
  CHECK_EQ(int{*file.page(1)}, 7);
  CHECK(!memory.isTorn());
  CHECK_EQ(int{*file.page(3)}, 0);
  CHECK(memory.isTorn());
  *file.page(2) = 5;
  CHECK_EQ(int{*file.page(2)}, 5);
  CHECK_EQ(int{*file.page(0)}, 7);
}

TEST(each_file_tells_of_its_own) {
  File first, second;
  const MappedMemory a(first.data(), kPages * kPageBytes), b(second.data(), kPages * kPageBytes);
  second.truncate(0);
  CHECK_EQ(int{*second.page(0)}, 0);
  CHECK(b.isTorn());
  CHECK(!a.isTorn());
}

TEST(memory_that_is_not_watched_ends_the_process_as_before) {
  const pid_t child = fork();
  if (child == 0) {
    File file;
    { const MappedMemory memory(file.data(), kPages * kPageBytes); }
    file.truncate(0);
    _exit(*file.page(0));
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(WIFSIGNALED(status));
  CHECK_EQ(WTERMSIG(status), SIGBUS);
}

TEST(more_files_than_there_is_room_for_change_nothing) {
  File file;
  std::vector<std::unique_ptr<MappedMemory>> many;
  for (int i = 0; i < 1100; ++i)
    many.push_back(std::make_unique<MappedMemory>(file.data(), std::size_t{0}));
  many.clear();
  const MappedMemory memory(file.data(), kPages * kPageBytes);
  file.truncate(0);
  CHECK_EQ(int{*file.page(0)}, 0);
  CHECK(memory.isTorn());
}
