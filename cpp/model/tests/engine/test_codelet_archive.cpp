// .gp files: which native code runs.
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>

#include "Check.hpp"
#include "engine/codelets/CodeletArchive.hpp"
#include "engine/codelets/CodeletStore.hpp"
#include "engine/codelets/Codelets.hpp"
#include "poplar/Program.hpp"
#include "popops/OnDevice.hpp"

using namespace poplar;
using namespace ipujax::engine;  // NOLINT: its plain functions
namespace fs = std::filesystem;

namespace {

CodeletFile answering(int number) {
  return codeletsFromText(
      "#include <poplar/Vertex.hpp>\n"
      "struct Answer : poplar::Vertex { poplar::Output<int> out;"
      " bool compute() { *out = " +
          std::to_string(number) + "; return true; } };",
      "-DFLAG=1");
}

/// A file whose source says `number`, and whose library says ten times that.
void write(const fs::path& path, int number, const std::string& before_key = "") {
  const CodeletFile source = answering(number), library = answering(10 * number);
  const std::string key = libraryKey(codeletUnit(source, source.found.types), source.flags);
  const std::string code = nativeCode(codeletUnit(library, library.found.types), library.flags);
  writeFile(path,
            writeArchive({{{"a.cpp", source.text, source.flags}}, {{before_key + key, code}}}));
}

int answerOf(const fs::path& path) {
  OnDevice d;
  d.graph.addCodelets(path.string());
  const Tensor out = d.graph.addVariable(INT, {}, "out");
  d.graph.setTileMapping(out, 0);
  const ComputeSet cs = d.graph.addComputeSet();
  d.graph.setTileMapping(d.graph.addVertex(cs, "Answer", {{"out", out}}), 0);
  d.prog.add(program::Execute(cs));
  return d.read<int>(out)[0];
}

}  // namespace

TEST(native_code_runs_from_the_trusted_folder_alone) {
  const fs::path base = fs::temp_directory_path() / "ipujax_archive_test";
  fs::remove_all(base);
  fs::create_directories(base / "trusted" / "below");
  for (const auto& folder : {base, base / "trusted"}) fs::permissions(folder, fs::perms::owner_all);
  fs::permissions(base / "trusted" / "below", fs::perms::owner_all);
  write(base / "a.gp", 1);
  write(base / "trusted" / "a.gp", 2);
  write(base / "trusted" / "below" / "a.gp", 3);
  write(base / "trusted" / "shared.gp", 4);
  write(base / "trusted" / "other_version.gp", 5, "of ");
  for (const char* file : {"a.gp", "below/a.gp", "other_version.gp"})
    fs::permissions(base / "trusted" / file, fs::perms(0600));
  fs::permissions(base / "trusted" / "shared.gp", fs::perms(0620));
  fs::create_symlink(base / "a.gp", base / "trusted" / "link.gp");

  CHECK_EQ(answerOf(base / "a.gp"), 1);  // no folder is trusted
  setenv("IPUJAX_TRUST_NATIVE_CODE", (base / "trusted").c_str(), 1);
  CHECK_EQ(answerOf(base / "a.gp"), 1);
  CHECK_EQ(answerOf(base / "trusted" / "a.gp"), 20);
  CHECK_EQ(answerOf(base / "trusted" / "below" / "a.gp"), 30);
  CHECK_EQ(answerOf(base / "trusted" / "shared.gp"), 4);
  CHECK_EQ(answerOf(base / "trusted" / "other_version.gp"), 5);
  CHECK_EQ(answerOf(base / "trusted" / "link.gp"), 1);
  unsetenv("IPUJAX_TRUST_NATIVE_CODE");
  fs::remove_all(base);
}
