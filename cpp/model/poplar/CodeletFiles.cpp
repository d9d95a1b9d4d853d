#include <algorithm>
#include <array>
#include <filesystem>
#include <istream>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

#include "engine/codelets/CodeletArchive.hpp"
#include "engine/codelets/CodeletStore.hpp"
#include "engine/codelets/LibraryCodelets.hpp"
#include "engine/codelets/VertexStore.hpp"
#include "engine/graph/GraphImpl.hpp"
#include "poplar/Graph.hpp"
#include "poplar/internal/Held.hpp"

// The part of Graph that loads codelets.
namespace poplar {
namespace {

using ipujax::engine::GraphImpl;
using ipujax::engine::VertexStore;

struct FileType {
  CodeletFileType type;
  std::string_view ending;
  std::string_view language;
};
constexpr std::array kFileTypes{
    FileType{CodeletFileType::PreprocessedAsmSource, ".s", "assembler"},
    FileType{CodeletFileType::AsmSource, ".S", "assembler-with-cpp"},
    FileType{CodeletFileType::CSource, ".c", "c"},
    FileType{CodeletFileType::CppSource, ".cpp", "c++"},
    FileType{CodeletFileType::IrSource, ".ll", "ir"},
    FileType{CodeletFileType::Object, ".gp", ""},
};

const FileType& rowOf(CodeletFileType type) {
  const auto row = std::ranges::find(kFileTypes, type, &FileType::type);
  if (row != kFileTypes.end()) return *row;
  throw poplar_error(
      "[CodeletFileType] needs a type other than Auto; got Auto. Name the file's type.");
}

VertexStore& storeOf(GraphImpl& impl) {
  if (!impl.vertices) impl.vertices = std::make_shared<VertexStore>();
  return *impl.vertices;
}

/// Uses the archive's native code if the user trusts the file and passes no flags. Otherwise, or if
/// that code is for another version or processor, compiles the sources.
void addArchive(GraphImpl& impl, const std::string& path, const std::string& flags) {
  using namespace ipujax::engine;  // NOLINT: of this function
  const auto store = CodeletStore::open();
  const auto trusted = store ? store->trusted(path) : std::nullopt;
  const CodeletArchive archive = readArchive(readFile(trusted.value_or(path)), path);
  if (trusted) {
    for (const ArchivedLibrary& library : archive.libraries)
      if (isLibraryKey(library.key)) CodeletLibrary::adopt(library.key, library.code);
  }
  for (const ArchivedSource& source : archive.sources) {
    const std::string all = flags.empty() ? source.flags : source.flags + " " + flags;
    storeOf(impl).add(inspectCodelets(source.text, all));
  }
}

/// The file itself, or for other types the C++ file of the same name beside it.
std::string sourceOf(const std::string& path, CodeletFileType type) {
  if (type == CodeletFileType::Auto || type == CodeletFileType::CppSource) return path;
  const std::string twin = std::filesystem::path(path).replace_extension(".cpp").string();
  if (std::filesystem::exists(twin)) return twin;
  throw file_load_error(
      "[Graph::addCodelets] needs C++ source on the IPU Model, which has no IPU to run assembly; "
      "got " +
      path + ". Put the same codelets in C++ beside it, in " + twin + ".");
}

template <class F>
void writingErrors(std::ostream& out, const F& add) {
  try {
    add();
  } catch (const graph_program_compilation_error& error) {
    out << error.what() << std::endl;
    throw;
  }
}

}  // namespace

CodeletFileType getCodeletFileType(const char* path) {
  const std::string_view name(path);
  for (const auto& row : kFileTypes) {
    if (name.ends_with(row.ending)) return row.type;
  }
  return CodeletFileType::Auto;
}

std::string getExtensionFromFileType(CodeletFileType type) {
  return std::string(rowOf(type).ending);
}
std::string getLanguageOption(CodeletFileType type) { return std::string(rowOf(type).language); }

bool Graph::addCodelets(StringRef src, CodeletFileType type, StringRef compileFlags,
                        StringRef /*targetName*/) {
  const std::string path(src);
  if (type == CodeletFileType::Auto) type = getCodeletFileType(path.c_str());
  if (type == CodeletFileType::Object) {
    addArchive(impl(), path, compileFlags);
  } else {
    storeOf(impl()).add(ipujax::engine::readCodelets(sourceOf(path, type), compileFlags));
  }
  return true;
}

bool Graph::addCodelets(StringRef src, CodeletFileType type, StringRef compileFlags,
                        std::ostream& compileOutput, StringRef targetName) {
  writingErrors(compileOutput, [&] { addCodelets(src, type, compileFlags, targetName); });
  return true;
}

void Graph::addCodelets(std::istream& stream, StringRef compileFlags, CodeletFileType type,
                        StringRef /*targetName*/) {
  if (type != CodeletFileType::Auto && type != CodeletFileType::CppSource)
    throw file_load_error(
        "[Graph::addCodelets] needs C++ source on the IPU Model; got another kind. Pass "
        "CodeletFileType::CppSource.");
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  storeOf(impl()).add(ipujax::engine::codeletsFromText(text, compileFlags));
}

void Graph::addCodelets(std::istream& stream, StringRef compileFlags, std::ostream& compileOutput,
                        CodeletFileType type, StringRef targetName) {
  writingErrors(compileOutput, [&] { addCodelets(stream, compileFlags, type, targetName); });
}

bool Graph::addCodelets(ArrayRef<std::string> sources, StringRef compileFlags,
                        StringRef targetName) {
  for (const auto& source : sources)
    addCodelets(source, CodeletFileType::Auto, compileFlags, targetName);
  return true;
}

bool Graph::addCodelets(std::initializer_list<StringRef> sources, StringRef compileFlags,
                        StringRef targetName) {
  for (const auto& source : sources)
    addCodelets(source, CodeletFileType::Auto, compileFlags, targetName);
  return true;
}

bool Graph::hasCodelet(StringRef codeletName) const {
  const std::string type = ipujax::engine::normaliseTypeName(codeletName);
  std::size_t file = 0;
  return (internal::held(impl_, "Graph").vertices &&
          internal::held(impl_, "Graph").vertices->findClass(type, file)) ||
         ipujax::engine::libraryCodelets(type);
}

}  // namespace poplar
