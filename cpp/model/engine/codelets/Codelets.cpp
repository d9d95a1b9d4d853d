#include "engine/codelets/Codelets.hpp"

#include <dlfcn.h>
#include <link.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <set>
#include <sstream>

#include "engine/Errors.hpp"
#include "engine/codelets/CodeletBuild.hpp"
#include "engine/codelets/CodeletGuard.hpp"
#include "engine/codelets/CodeletStatics.hpp"
#include "engine/codelets/CodeletStore.hpp"
#include "engine/codelets/CodeletText.hpp"
#include "engine/codelets/Compiler.hpp"
#include "engine/codelets/Interruptible.hpp"

namespace ipujax::engine {
namespace {

namespace fs = std::filesystem;

const char* const kAddCodelets = "Graph::addCodelets";

/// The lines of preprocessed text that are not from system headers (flag 3 of a line marker).
std::string withoutSystemHeaders(const std::string& text) {
  std::istringstream in(text);
  std::string kept;
  bool system = false;
  for (std::string line; std::getline(in, line);) {
    if (const auto marker = beginsSystemHeader(line))
      system = *marker;
    else if (!system)
      kept += line + "\n";
  }
  return kept;
}

}  // namespace

namespace {

/// Preprocesses a file. One that refuses hosts with an #error is preprocessed as for the IPU, and
/// its flags then say so.
std::string preprocessed(CodeletFile& file) {
  const TemporaryFolder folder;
  const std::string source = (folder / "codelets.cpp").string();
  const std::string result = (folder / "codelets.ii").string();
  const std::string for_ipu = file.flags + kForIpu;
  writeFile(source, file.text);
  const auto run = [&](const std::string& flags) {
    runCompiler(kAddCodelets, {"-E", source, "-o", result}, flags);
  };
  try {
    run(file.flags);
  } catch (const graph_program_compilation_error& for_hosts) {
    if (!mayBeForIpu(file.text, file.flags)) throw;
    try {
      run(for_ipu);
    } catch (const graph_program_compilation_error& as_for_ipu) {
      throw fewerErrors(for_hosts, as_for_ipu);
    }
    file.flags = for_ipu;
  }
  return readFile(result);
}

}  // namespace

CodeletFile inspectCodelets(std::string text, const std::string& flags) {
  // Each text is inspected once in a process, as libraries are compiled once.
  static std::mutex mutex;
  static auto& known = *new std::map<std::string, CodeletFile>();  // NOLINT: kept to the end
  const std::string key = libraryKey(text, flags);
  {
    const std::lock_guard lock(mutex);
    if (const auto found = known.find(key); found != known.end()) return found->second;
  }
  CodeletFile file;
  file.text = std::move(text);
  file.flags = flags;
  file.found = parseCodelets(withoutSystemHeaders(preprocessed(file)));
  const std::lock_guard lock(mutex);
  return known.try_emplace(key, std::move(file)).first->second;
}

CodeletFile codeletsFromText(const std::string& text, const std::string& flags,
                             const std::string& path) {
  return inspectCodelets(wholeText(text, path), flags);
}

CodeletFile readCodelets(const std::string& path, const std::string& flags) {
  return codeletsFromText(readFile(path), flags, path);
}

const CodeletClass* findClass(const CodeletFile& file, const std::string& type) {
  const auto& classes = file.found.classes;
  const std::string base = type.substr(0, type.find('<'));
  if (const auto it = classes.find(type); it != classes.end() && !it->second.is_template)
    return &it->second;
  if (const auto it = classes.find(base);
      it != classes.end() && it->second.is_template && base != type)
    return &it->second;
  return nullptr;
}

namespace {

const CodeletClass& classOf(const CodeletFile& file, const std::string& type) {
  const auto exact = file.found.classes.find(type);
  if (exact != file.found.classes.end()) return exact->second;
  return file.found.classes.at(type.substr(0, type.find('<')));
}

}  // namespace

namespace {

std::string aliasName(std::size_t type) { return "IpujaxType" + std::to_string(type); }

/// The names of all members of the types.
std::set<std::string> membersOf(const CodeletFile& file, const std::vector<std::string>& types) {
  std::set<std::string> members;
  for (const std::string& type : types) {
    const auto& fields = classOf(file, type).fields;
    members.insert(fields.begin(), fields.end());
  }
  return members;
}

/// The alias of a type, declared in its class's namespace, in which its arguments may be named.
std::string aliasOf(const std::string& type, const std::string& alias) {
  const std::string base = type.substr(0, type.find('<'));
  const std::size_t end = base.rfind("::");
  const std::string scope = end == std::string::npos ? "" : base.substr(0, end);
  const std::string declared = "using " + alias + " = ::" + type + ";\n";
  if (scope.empty()) return declared;
  return "namespace " + scope + " { " + declared + "}\nusing " + scope + "::" + alias + ";\n";
}

}  // namespace

std::string codeletUnit(const CodeletFile& file, const std::vector<std::string>& types) {
  std::ostringstream unit;
  unit << file.text << "\n#line 1 \"the table of codelets\"\n";
  for (const std::string& member : membersOf(file, types))
    unit << "IPUJAX_MEMBER(" << member << ")\n";
  for (std::size_t i = 0; i < types.size(); ++i) unit << aliasOf(types[i], aliasName(i));
  unit << "static constexpr IpujaxCodelet ipujax_table[] = {\n";
  for (std::size_t i = 0; i < types.size(); ++i) {
    const CodeletClass& found = classOf(file, types[i]);
    unit << "  ipujax_codelet::ipujax_row<" << aliasName(i)
         << (found.declares_constructor ? ", false" : ", true");
    for (const std::string& member : found.fields) unit << ", IpujaxMember_" << member;
    unit << ">(\"" << types[i] << "\"),\n";
  }
  unit << "  {}};\n"
       << "extern \"C\" __attribute__((__visibility__(\"default\")))\n"
       << "const IpujaxCodelet* ipujax_codelets(unsigned* ipujax_count) {\n"
       << "  *ipujax_count = " << types.size() << ";\n  return ipujax_table;\n}\n";
  return unit.str();
}

namespace {

/// The writable memory of a library.
std::vector<IpujaxRange> variablesOf(void* handle) {
  struct Search {
    const link_map* library = nullptr;
    std::vector<IpujaxRange> found;
  } search;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &search.library) != 0) return {};
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* context) {
        auto& wanted = *static_cast<Search*>(context);
        if (info->dlpi_addr != wanted.library->l_addr) return 0;
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto& part = info->dlpi_phdr[i];
          const auto* begin = reinterpret_cast<const char*>(info->dlpi_addr + part.p_vaddr);
          if (part.p_type == PT_LOAD && (part.p_flags & PF_W) != 0)
            wanted.found.push_back({begin, begin + part.p_memsz});
        }
        return 1;
      },
      &search);
  return search.found;
}

}  // namespace

CodeletLibrary::CodeletLibrary(const std::string& file)
    : handle_(dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) {
  if (!handle_) {
    const char* reason = dlerror();
    throw link_error(std::string("[codelets] could not load what was compiled: ") +
                     (reason ? reason : "no reason given"));
  }
  using Entry = const IpujaxCodelet* (*)(unsigned*);
  const auto entry = reinterpret_cast<Entry>(dlsym(handle_, "ipujax_codelets"));
  // Only libraries with registers, or that count, have the ones below.
  const auto enter = reinterpret_cast<IpujaxEnter (*)()>(dlsym(handle_, "ipujax_enter"));
  const auto counter =
      reinterpret_cast<const IpujaxCounter* (*)()>(dlsym(handle_, "ipujax_counter"));
  registers_ = reinterpret_cast<IpujaxRange (*)()>(dlsym(handle_, "ipujax_registers_here"));
  random_ = reinterpret_cast<IpujaxRandom>(dlsym(handle_, "ipujax_random_here"));
  if (!entry) {
    dlclose(handle_);
    throw link_error("[codelets] needs a library of codelets; got " + file +
                     ", which has no table of them. Remove it.");
  }
  if (void* leave = dlsym(handle_, "ipujax_leave"))
    *static_cast<void (**)(const char*)>(leave) = leaveGuarded;
  if (void* given = dlsym(handle_, "ipujax_statics"))
    *static_cast<const IpujaxStatics**>(given) = statics();
  codelets_ = entry(&count_);
  construct();
  if (enter) enter_ = enter();
  if (counter) counter_ = counter();
  unseen_ = reinterpret_cast<std::uint64_t* (*)()>(dlsym(handle_, "ipujax_unseen_here"));
  if (unseen_) turns_ = static_cast<const IpujaxTurns**>(dlsym(handle_, "ipujax_turns"));
  if (turns_) variables_ = variablesOf(handle_);
}

/// The library stays loaded if it fails: something may point into it.
void CodeletLibrary::construct() const {
  const auto fail = [&](const std::string& does) {
    throw application_runtime_error(
        "[codelets] needs static variables whose constructors do not fail; one in the source of " +
        std::string(count_ > 0 ? codelets_[0].name : "a codelet") + " " + does +
        ". Correct its code.");
  };
  try {
    guarded([&] {
      const Interruptible interruptible(true);
      runConstructors(handle_);
    });
  } catch (const CodeletFault& e) {
    Interruptible::left();
    fail(e.what());
  } catch (const std::exception& e) {
    fail(std::string("said: ") + e.what());
  } catch (...) {
    fail("threw what is no std::exception");
  }
}

CodeletLibrary::~CodeletLibrary() { dlclose(handle_); }

void CodeletLibrary::giveTurns(const IpujaxTurns* turns) const {
  if (turns_) __atomic_store_n(turns_, turns, __ATOMIC_RELEASE);
}

const IpujaxCodelet* CodeletLibrary::find(const std::string& type) const {
  for (unsigned i = 0; i < count_; ++i)
    if (type == codelets_[i].name) return &codelets_[i];
  return nullptr;
}

const IpujaxCodelet& CodeletLibrary::codelet(const std::string& type) const {
  if (const IpujaxCodelet* const found = find(type)) return *found;
  throw unknown_vertex_type("[codelets] needs a vertex type that addCodelets added; got " + type +
                            ". Add its codelet first.");
}

namespace {

/// The libraries that this process compiled, or loaded from the user's folder; never released,
/// since programs that use them may be loaded again.
struct Libraries {
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<const CodeletLibrary>> by_text;
};
Libraries& libraries() {
  static Libraries& all = *new Libraries();  // NOLINT: threads may run codelets to the very end
  return all;
}

/// The kind of processor, as far as compiled codelets depend on it.
std::string machineName() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("f16c") ? "x86_64 f16c" : "x86_64";
#elif defined(__aarch64__)
  return "aarch64";
#else
  return "host";
#endif
}

std::string keyBegin() {
  return "ipujax " IPUJAX_VERSION " " + std::to_string(kIpujaxCodeletAbi) + " " + machineName() +
         "\n";
}

}  // namespace

std::string libraryKey(const std::string& unit, const std::string& flags) {
  return keyBegin() + flags + "\n" + unit;
}

bool isLibraryKey(const std::string& key) { return key.starts_with(keyBegin()); }

std::shared_ptr<const CodeletLibrary> CodeletLibrary::known(const std::string& text) {
  auto& by_text = libraries().by_text;
  if (const auto found = by_text.find(text); found != by_text.end()) return found->second;
  const auto store = CodeletStore::open();
  const auto kept = store ? store->find(text) : std::nullopt;
  if (!kept) return nullptr;
  try {
    const std::shared_ptr<const CodeletLibrary> library(new CodeletLibrary(kept->string()));
    by_text[text] = library;
    return library;
  } catch (const link_error&) {  // damaged: as if it were not there
    return nullptr;
  }
}

std::string nativeCode(const std::string& unit, const std::string& flags) {
  const TemporaryFolder folder;
  const fs::path result = folder / "codelets.so";
  buildCodelets(unit, flags, folder, result);
  return readFile(result);
}

void CodeletLibrary::adopt(const std::string& key, const std::string& code) {
  const std::lock_guard<std::mutex> lock(libraries().mutex);
  auto& by_text = libraries().by_text;
  if (by_text.count(key) != 0) return;
  const TemporaryFolder folder;
  const fs::path file = folder / "codelets.so";
  writeFile(file, code);
  by_text[key] = std::shared_ptr<const CodeletLibrary>(new CodeletLibrary(file.string()));
}

std::shared_ptr<const CodeletLibrary> CodeletLibrary::compile(const std::string& unit,
                                                              const std::string& flags) {
  const std::string text = libraryKey(unit, flags);
  const std::lock_guard<std::mutex> lock(libraries().mutex);
  if (auto library = known(text)) return library;
  const TemporaryFolder folder;
  const fs::path result = folder / "codelets.so";
  buildCodelets(unit, flags, folder, result);
  std::shared_ptr<const CodeletLibrary> library(new CodeletLibrary(result.string()));
  if (const auto store = CodeletStore::open()) store->add(text, result);
  libraries().by_text[text] = library;
  return library;
}

std::shared_ptr<const CodeletLibrary> CodeletLibrary::find(const std::string& unit,
                                                           const std::string& flags) {
  const std::lock_guard<std::mutex> lock(libraries().mutex);
  if (auto library = known(libraryKey(unit, flags))) return library;
  throw link_error(
      "[codelets] needs native code that this process compiled, or that the folder "
      "IPUJAX_TRUST_NATIVE_CODE holds; got an executable with codelets of neither. Set "
      "IPUJAX_TRUST_NATIVE_CODE to a folder of yours that no one else may write to, where the "
      "program is compiled and where it is loaded, and compile it once more.");
}

}  // namespace ipujax::engine
