// Processes are started with argument lists: no shell ever interprets a text.
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <system_error>

#include "Check.hpp"
#include "engine/codelets/CodeletStore.hpp"
#include "engine/codelets/Codelets.hpp"
#include "engine/codelets/Process.hpp"
#include "engine/image/Image.hpp"
#include "poplar/Engine.hpp"
#include "poplar/Graph.hpp"
#include "poplar/IPUModel.hpp"
#include "poplar/exceptions.hpp"

namespace fs = std::filesystem;
using namespace poplar;
using ipujax::engine::CodeletStore;
using ipujax::engine::runProcess;
using ipujax::engine::splitArguments;

namespace {

/// A temporary folder of this test, and an environment variable that names it.
struct Folder {
  Folder() {
    std::string name = (fs::temp_directory_path() / "ipujax-test-XXXXXX").string();
    path = mkdtemp(name.data());
  }
  ~Folder() {
    unsetenv("IPUJAX_TRUST_NATIVE_CODE");
    fs::remove_all(path);
  }
  void trust() const { setenv("IPUJAX_TRUST_NATIVE_CODE", path.c_str(), 1); }
  fs::path path;
};

/// An executable with one codelet, whose step has been altered.
std::string altered(const std::string& attribute, const std::string& from, const std::string& to) {
  Graph graph(IPUModel().createDevice());
  std::istringstream source(R"(
    #include <poplar/Vertex.hpp>
    struct Set : poplar::Vertex {
      poplar::Output<float> out;
      bool compute() { *out = 1; return true; }
    };)");
  graph.addCodelets(source);
  const auto x = graph.addVariable(FLOAT, {1}, VariableMappingMethod::LINEAR, "x");
  auto set = graph.addComputeSet("set");
  const auto vertex = graph.addVertex(set, "Set", {{"out", x[0]}});
  graph.setTileMapping(vertex, 0);
  auto image = *compileGraph(graph, {program::Execute(set)}).image();
  for (auto& step : image.steps) {
    if (step.kernel != "engine.vertices") continue;
    std::string text = step.attributes.text(attribute);
    if (const auto at = text.find(from); at != std::string::npos) text.replace(at, from.size(), to);
    step.attributes.set(attribute, text);
  }
  return image.serialise();
}

void start(const std::string& sealed) {
  std::istringstream in(sealed);
  Engine engine(Executable::deserialize(in));
  engine.load(Device());
  engine.run(0);
}

}  // namespace

TEST(arguments_arrive_as_they_are) {
  const Folder folder;
  const std::string evil = "; touch " + (folder.path / "made").string() + " $(id) `id` 'x";
  const auto finished = runProcess({"printf", "%s|%s", evil, "b c"});
  CHECK_EQ(finished.exit_code, 0);
  CHECK_EQ(finished.output, evil + "|b c");
  CHECK(!fs::exists(folder.path / "made"));
}

TEST(how_a_process_ended_is_told) {
  CHECK_EQ(runProcess({"false"}).exit_code, 1);
  CHECK_EQ(runProcess({"sh", "-c", "echo out; echo err >&2; kill -9 $$"}).exit_code, -9);
  CHECK_EQ(runProcess({"sh", "-c", "echo out; echo err >&2"}).output, "out\nerr\n");
  CHECK_THROWS(runProcess({"no-such-program-anywhere"}), "no-such-program-anywhere");
}

TEST(words_of_a_line_are_told_apart) {
  const auto words = splitArguments("  -O2  -DA=\"b c\" '-D X=\"y\"' \"\" ");
  CHECK_EQ(words.size(), 4u);
  CHECK_EQ(words[1], "-DA=b c");
  CHECK_EQ(words[2], "-D X=\"y\"");
  CHECK_EQ(words[3], "");
}

TEST(no_compiler_is_a_clear_error) {
  setenv("CXX", "no-such-compiler", 1);
  Graph graph(IPUModel().createDevice());
  std::istringstream source("int x;");
  CHECK_THROWS(graph.addCodelets(source), "needs a C++ compiler");
  unsetenv("CXX");
}

TEST(flags_are_arguments) {
  const Folder folder;
  Graph graph(IPUModel().createDevice());
  std::istringstream source("#include <poplar/Vertex.hpp>\n");
  const std::string flags = "; touch " + (folder.path / "made").string();
  CHECK_THROWS(graph.addCodelets(source, flags), "needs C++ that compiles");
  CHECK(!fs::exists(folder.path / "made"));
}

TEST(what_this_process_compiled_runs_after_loading) { start(altered("flags", "none", "none")); }

TEST(foreign_code_is_refused_and_nothing_runs) {
  const Folder folder;
  const std::string made = (folder.path / "made").string();
  CHECK_THROWS(start(altered("unit", "*out = 1", "*out = 2")), "IPUJAX_TRUST_NATIVE_CODE");
  CHECK_THROWS(start(altered("flags", "", "; touch " + made)), "IPUJAX_TRUST_NATIVE_CODE");
  CHECK_THROWS(start(altered("flags", "", "-fplugin=" + made)), "IPUJAX_TRUST_NATIVE_CODE");
  CHECK(!fs::exists(made));
  folder.trust();  // this folder does not contain it
  CHECK_THROWS(start(altered("unit", "*out = 1", "*out = 2")), "IPUJAX_TRUST_NATIVE_CODE");
}

TEST(the_store_gives_back_what_was_put_in) {
  const Folder folder;
  CHECK(!CodeletStore::open());
  folder.trust();
  const auto store = CodeletStore::open();
  const auto library = folder.path / "some.so";
  std::ofstream(library) << "code";
  store->add("text", library);
  const auto found = store->find("text");
  CHECK(found.has_value());
  std::ifstream in(*found);
  std::string held;
  in >> held;
  CHECK_EQ(held, "code");
  CHECK(!store->find("other text"));
  fs::permissions(*found, fs::perms::others_write, fs::perm_options::add);
  CHECK(!store->find("text"));
}

TEST(folders_that_others_may_write_to_are_refused) {
  const Folder folder;
  folder.trust();
  fs::permissions(folder.path, fs::perms::group_write, fs::perm_options::add);
  CHECK_THROWS(CodeletStore::open(), "neither its group nor others");
  setenv("IPUJAX_TRUST_NATIVE_CODE", "relative", 1);
  CHECK_THROWS(CodeletStore::open(), "from the root");
  setenv("IPUJAX_TRUST_NATIVE_CODE", (folder.path / "absent").c_str(), 1);
  CHECK_THROWS(CodeletStore::open(), "IPUJAX_TRUST_NATIVE_CODE");
}

TEST(links_and_folders_that_others_may_replace_are_refused) {
  const Folder folder;
  const fs::path own = folder.path / "own", link = folder.path / "link";
  fs::create_directory(own);
  fs::permissions(own, fs::perms::owner_all);
  const auto opens = [](const fs::path& path) {
    setenv("IPUJAX_TRUST_NATIVE_CODE", path.c_str(), 1);
    return CodeletStore::open().has_value();
  };
  CHECK(opens(own));
  CHECK(opens(own / ""));  // a slash at the end
  CHECK(opens(own / ".." / "own"));
  fs::create_directory_symlink(own, link);
  CHECK_THROWS(opens(link), "no symbolic link");
  CHECK_THROWS(opens(link / ""), "no symbolic link");
  fs::permissions(folder.path, fs::perms::others_write, fs::perm_options::add);
  CHECK_THROWS(opens(own), "their group and others may not write to");
  fs::permissions(folder.path, fs::perms::sticky_bit, fs::perm_options::add);
  CHECK(opens(own));  // as in /tmp
  fs::permissions(folder.path, fs::perms::owner_all | fs::perms::group_write);
  CHECK_THROWS(opens(own), "their group and others may not write to");
  fs::permissions(folder.path, fs::perms::owner_all);
  CHECK(opens(own));
  // A link further up that leads through a folder that everybody may write to.
  const fs::path shared = folder.path / "shared", above = folder.path / "above";
  fs::create_directories(shared / "own");
  fs::permissions(shared / "own", fs::perms::owner_all);
  fs::permissions(shared, fs::perms::all);
  fs::create_directory_symlink(shared, above);
  CHECK_THROWS(opens(above / "own"), "their group and others may not write to");
  fs::permissions(shared, fs::perms::owner_all);
  CHECK(opens(above / "own"));
  std::ofstream(folder.path / "file") << "no folder";
  CHECK_THROWS(opens(folder.path / "file"), "a folder of yours");
  if (geteuid() == 0) {
    CHECK_EQ(lchown(above.c_str(), 12345, 12345), 0);  // who may redirect it
    CHECK_THROWS(opens(above / "own"), "folders of yours or root's");
    CHECK_EQ(chown(shared.c_str(), 12345, 12345), 0);
    CHECK_THROWS(opens(shared / "own"), "folders of yours or root's");
    CHECK_EQ(chown(own.c_str(), 12345, 12345), 0);
    CHECK_THROWS(opens(own), "a folder of yours");
  }
}

/// A store in a folder of its own, with one library for "text".
struct Store : Folder {
  Store() {
    trust();
    std::ofstream(path / "some.so") << "code";
    CodeletStore::open()->add("text", path / "some.so");
    fs::remove(path / "some.so");
  }
  std::optional<fs::path> find() const { return CodeletStore::open()->find("text"); }
  std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(path), fs::directory_iterator{}));
  }
};

TEST(links_in_the_store_are_not_followed) {
  const Store store;
  const fs::path library = *store.find(), elsewhere = store.path / "elsewhere";
  CHECK_EQ(store.files(), 2u);
  fs::rename(library, elsewhere);
  CHECK(!store.find());
  fs::create_symlink(elsewhere, library);
  CHECK(!store.find());
}

TEST(files_of_others_in_the_store_are_not_used) {
  if (geteuid() != 0) return;  // only root can give files away
  const Store store;
  CHECK_EQ(chown(store.find()->c_str(), 12345, 12345), 0);
  CHECK(!store.find());
}

/// While this object lives, files end at this size, as on a full disk.
struct SmallDisk {
  explicit SmallDisk(rlim_t bytes) {
    getrlimit(RLIMIT_FSIZE, &before);
    const rlimit small{bytes, before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
  }
  ~SmallDisk() {
    setrlimit(RLIMIT_FSIZE, &before);
    std::signal(SIGXFSZ, handler);
  }
  rlimit before{};
  void (*handler)(int) = std::signal(SIGXFSZ, SIG_IGN);
};

TEST(what_cannot_be_kept_leaves_nothing) {
  const Store store;
  const fs::path library = store.path / "large.so";
  std::ofstream(library) << std::string(5000, 'x');
  const auto add = [&](const std::string& text, const fs::path& from) {
    CodeletStore::open()->add(text, from);  // warns; the program runs without
  };
  add("other text", store.path / "absent.so");
  CHECK_EQ(store.files(), 3u);
  {
    const SmallDisk disk(1000);
    add("other text", library);
    CHECK_EQ(store.files(), 3u);
    CHECK_THROWS(ipujax::engine::writeFile(store.path / "text", std::string(5000, 'x')),
                 "needs space to write");
    fs::remove(store.path / "text");
    fs::resize_file(library, 500);
    add(std::string(5000, 'x'), library);  // the library fits, but its text does not
  }
  CHECK(!CodeletStore::open()->find(std::string(5000, 'x')));
  CHECK(store.find().has_value());
  for (const auto& entry : fs::directory_iterator(store.path))
    CHECK(entry.path().filename().string().find("partial") == std::string::npos);
}

TEST(what_killed_processes_left_is_removed) {
  const Store store;
  const fs::path old = store.path / "codelets-00.so.partial-1-0",
                 fresh = store.path / "x.partial-2";
  std::ofstream(old) << "half";
  std::ofstream(fresh) << "half";
  fs::last_write_time(old, fs::file_time_type::clock::now() - std::chrono::hours(2));
  CodeletStore::open()->add("more", *store.find());
  CHECK(!fs::exists(old));
  CHECK(fs::exists(fresh));  // somebody may be writing it
}

/// Compiles in a process that is killed while it waits for the compiler.
TEST(a_process_that_is_killed_leaves_no_half_file) {
  if (std::getenv("IPUJAX_TEST_SLOW")) {
    altered("flags", "none", "none");
    return;
  }
  const Folder folder;
  folder.trust();
  const fs::path compiler = folder.path / "compiler";
  std::ofstream(compiler) << "#!/bin/sh\ncase \"$*\" in *-shared*) kill -9 $PPID; sleep 1;; esac\n"
                             "exec c++ \"$@\"\n";
  fs::permissions(compiler, fs::perms::owner_all);
  setenv("IPUJAX_TEST_SLOW", "1", 1);
  setenv("CXX", compiler.c_str(), 1);
  const fs::path temporary = folder.path / "temporary";
  fs::create_directory(temporary);
  setenv("TMPDIR", temporary.c_str(), 1);
  const auto ended = runProcess(
      {fs::read_symlink("/proc/self/exe"), "a_process_that_is_killed_leaves_no_half_file"});
  for (const char* name : {"CXX", "TMPDIR", "IPUJAX_TEST_SLOW"}) unsetenv(name);
  CHECK_EQ(ended.exit_code, -9);
  fs::remove_all(temporary);
  for (const auto& entry : fs::directory_iterator(folder.path))
    CHECK_EQ(entry.path().filename().string(), "compiler");
}

TEST(a_damaged_library_is_as_none) {
  const Folder folder;
  folder.trust();
  const auto compile = [] {
    Graph graph(IPUModel().createDevice());
    std::istringstream source(R"(
      #include <poplar/Vertex.hpp>
      struct Set : poplar::Vertex {
        poplar::Output<float> out;
        bool compute() { *out = 1; return true; }
      };)");
    graph.addCodelets(source, "-DDAMAGED");
    const auto x = graph.addVariable(FLOAT, {1}, VariableMappingMethod::LINEAR, "x");
    auto set = graph.addComputeSet("set");
    graph.setTileMapping(graph.addVertex(set, "Set", {{"out", x[0]}}), 0);
    compileGraph(graph, {program::Execute(set)});
  };
  if (std::getenv("IPUJAX_TEST_DAMAGED")) return compile();
  const auto again = [] {
    setenv("IPUJAX_TEST_DAMAGED", "1", 1);
    const auto ended =
        runProcess({fs::read_symlink("/proc/self/exe"), "a_damaged_library_is_as_none"});
    unsetenv("IPUJAX_TEST_DAMAGED");
    return ended.exit_code;
  };
  CHECK_EQ(again(), 0);
  for (const auto& entry : fs::directory_iterator(folder.path))
    if (entry.path().extension() == ".so") fs::resize_file(entry.path(), 100);
  CHECK_EQ(again(), 0);
  for (const auto& entry : fs::directory_iterator(folder.path))
    if (entry.path().extension() == ".so") CHECK(fs::file_size(entry.path()) > 1000);
}

/// Runs itself in a new process, which loads and runs the executable.
TEST(another_process_runs_codelets_from_the_folder_alone) {
  const char* sealed = std::getenv("IPUJAX_TEST_SEALED");
  if (sealed) {
    std::ifstream in(sealed, std::ios::binary);
    std::ostringstream bytes;
    bytes << in.rdbuf();
    return start(bytes.str());
  }
  const Folder folder;
  const std::string file = folder.path / "program";
  const std::vector<std::string> again{fs::read_symlink("/proc/self/exe"),
                                       "another_process_runs_codelets_from_the_folder_alone"};
  setenv("IPUJAX_TEST_SEALED", file.c_str(), 1);
  // The flag makes the text differ from that of earlier tests.
  const auto compile = [&](const std::string& flags) {
    Graph graph(IPUModel().createDevice());
    std::istringstream source(R"(
      #include <poplar/Vertex.hpp>
      struct Set : poplar::Vertex {
        poplar::Output<float> out;
        bool compute() { *out = 1; return true; }
      };)");
    unsetenv("IPUJAX_TEST_SEALED");
    graph.addCodelets(source, flags);
    const auto x = graph.addVariable(FLOAT, {1}, VariableMappingMethod::LINEAR, "x");
    auto set = graph.addComputeSet("set");
    graph.setTileMapping(graph.addVertex(set, "Set", {{"out", x[0]}}), 0);
    std::ofstream out(file, std::ios::binary);
    compileGraph(graph, {program::Execute(set)}).serialize(out);
    setenv("IPUJAX_TEST_SEALED", file.c_str(), 1);
  };
  compile("-DFIRST");
  const auto refused = runProcess(again);
  CHECK_EQ(refused.exit_code, 1);
  CHECK(refused.output.find("IPUJAX_TRUST_NATIVE_CODE") != std::string::npos);
  folder.trust();
  CHECK_EQ(runProcess(again).exit_code, 1);  // nobody put it there
  compile("-DSECOND");
  const auto ran = runProcess(again);
  CHECK_EQ(ran.output.substr(0, 3), "ok ");
  CHECK_EQ(ran.exit_code, 0);
  unsetenv("IPUJAX_TEST_SEALED");
}

TEST(assembly_needs_a_twin_in_cpp) {
  const Folder folder;
  const std::string assembly = (folder.path / "set.S").string();
  std::ofstream(assembly) << "setzi $m0, 1\n";
  Graph graph(IPUModel().createDevice());
  CHECK_THROWS(graph.addCodelets(assembly), "Put the same codelets in C++ beside it");
  std::ofstream(folder.path / "set.cpp") << R"(
    #include <poplar/Vertex.hpp>
    struct Set : poplar::Vertex {
      poplar::Output<float> out;
      bool compute() { *out = 1; return true; }
    };)";
  CHECK(graph.addCodelets(assembly));
  CHECK(graph.hasCodelet("Set"));
  CHECK_THROWS(graph.addCodelets((folder.path / "none.gp").string()), "none.gp");
}
