#include "engine/codelets/CodeletStatics.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sched.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "engine/Errors.hpp"
#include "engine/codelets/CodeletGuard.hpp"
#include "engine/codelets/CodeletStore.hpp"

namespace ipujax::engine {
namespace {

/// Tags of the dynamic section that loaders do not know, in the range for operating systems.
constexpr ElfW(Sxword) kArray = 0x69706a01, kArrayBytes = 0x69706a02, kNothing = 0x69706a03;

ElfW(Sxword) hidden(ElfW(Sxword) tag) {
  if (tag == DT_INIT_ARRAY) return kArray;
  if (tag == DT_INIT_ARRAYSZ) return kArrayBytes;
  return tag == DT_FINI_ARRAY || tag == DT_FINI_ARRAYSZ ? kNothing : tag;
}

/// The structure T at an offset of a file.
template <class T>
T at(const std::string& file, std::size_t offset) {
  if (offset > file.size() || file.size() - offset < sizeof(T))
    throw link_error(
        "[codelets] needs a linker that makes ELF libraries; got another file. Set "
        "CXX to a compiler for this host.");
  T value;
  std::memcpy(&value, file.data() + offset, sizeof(T));
  return value;
}

}  // namespace

void hideConstructors(const std::filesystem::path& library) {
  std::string file = readFile(library);
  const auto header = at<ElfW(Ehdr)>(file, 0);
  if (std::string_view(file).substr(0, SELFMAG) != ELFMAG) at<ElfW(Ehdr)>(file, file.size());
  for (std::size_t i = 0; i < header.e_phnum; ++i) {
    const auto segment = at<ElfW(Phdr)>(file, header.e_phoff + i * sizeof(ElfW(Phdr)));
    if (segment.p_type != PT_DYNAMIC) continue;
    for (std::size_t begin = segment.p_offset;; begin += sizeof(ElfW(Dyn))) {
      auto entry = at<ElfW(Dyn)>(file, begin);
      if (entry.d_tag == DT_NULL) break;
      entry.d_tag = hidden(entry.d_tag);
      std::memcpy(file.data() + begin, &entry, sizeof(entry));
    }
  }
  writeFile(library, file);
}

void runConstructors(void* handle) {
  const link_map* library = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &library) != 0) return;
  using Constructor = void (*)(int, char**, char**);
  const Constructor* constructors = nullptr;
  std::size_t count = 0;
  for (const ElfW(Dyn)* entry = library->l_ld; entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == kArray)
      constructors = reinterpret_cast<const Constructor*>(library->l_addr + entry->d_un.d_ptr);
    if (entry->d_tag == kArrayBytes) count = entry->d_un.d_val / sizeof(Constructor);
  }
  char* no_arguments[] = {nullptr};
  for (std::size_t i = 0; constructors && i < count; ++i) constructors[i](0, no_arguments, environ);
}

namespace {

/// Compilers read the first byte of a variable's guard: 1 once it is constructed. The second byte
/// is 1 while a thread constructs it.
unsigned char* constructs(void* guard) { return static_cast<unsigned char*>(guard) + 1; }

/// The variables that this thread constructs, nested: a jump out of a codelet may end any of them.
struct Constructed {
  std::array<void*, 64> guards;
  std::size_t count;
};
__attribute__((tls_model("initial-exec"))) thread_local Constructed constructed;

void end(void* guard) {
  if (constructed.count > 0) --constructed.count;
  __atomic_store_n(constructs(guard), 0, __ATOMIC_RELEASE);
}

int acquire(void* guard) {
  if (__atomic_load_n(static_cast<unsigned char*>(guard), __ATOMIC_ACQUIRE) != 0)
    return kIpujaxDone;
  unsigned char nobody = 0;
  if (__atomic_compare_exchange_n(constructs(guard), &nobody, 1, false, __ATOMIC_ACQUIRE,
                                  __ATOMIC_RELAXED)) {
    if (__atomic_load_n(static_cast<unsigned char*>(guard), __ATOMIC_ACQUIRE) != 0) {
      __atomic_store_n(constructs(guard), 0, __ATOMIC_RELEASE);
      return kIpujaxDone;
    }
    if (constructed.count == constructed.guards.size())
      leaveGuarded("constructs static variables within one another, more than 64 deep");
    constructed.guards[constructed.count++] = guard;
    return kIpujaxConstruct;
  }
  for (std::size_t i = 0; i < constructed.count; ++i)
    if (constructed.guards[i] == guard) leaveGuarded("needs a static variable to construct it");
  sched_yield();
  return kIpujaxWait;
}

void release(void* guard) {
  __atomic_store_n(static_cast<unsigned char*>(guard), 1, __ATOMIC_RELEASE);
  end(guard);
}

}  // namespace

const IpujaxStatics* statics() {
  static constexpr IpujaxStatics all{acquire, release, end};
  return &all;
}

std::size_t numConstructed() { return constructed.count; }

void letGo(std::size_t count) {
  while (constructed.count > count) end(constructed.guards[constructed.count - 1]);
}

}  // namespace ipujax::engine
