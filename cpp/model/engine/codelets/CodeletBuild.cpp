#include "engine/codelets/CodeletBuild.hpp"

#include <algorithm>
#include <functional>
#include <vector>

#include "engine/Errors.hpp"
#include "engine/codelets/BlockCounts.hpp"
#include "engine/codelets/BracedAssignments.hpp"
#include "engine/codelets/CodeletStatics.hpp"
#include "engine/codelets/CodeletStore.hpp"
#include "engine/codelets/CodeletText.hpp"
#include "engine/codelets/Codelets.hpp"
#include "engine/codelets/WorkerCalls.hpp"

namespace ipujax::engine {
namespace {

namespace fs = std::filesystem;

const char* const kAddCodelets = "Graph::addCodelets";

/// Precedes each further source of a unit; each source is compiled by itself. The line ends with
/// the source's flags.
const std::string kNextSource = "\n#error ipujax: the next source of this unit has flags: ";

struct Source {
  std::string text;
  std::string flags;
};

/// The sources of a unit; the first has the unit's flags.
std::vector<Source> sourcesOf(const std::string& unit, const std::string& flags) {
  std::vector<Source> sources{{"", flags}};
  std::size_t begin = 0;
  for (std::size_t at; (at = unit.find(kNextSource, begin)) != std::string::npos;) {
    sources.back().text = unit.substr(begin, at - begin);
    const std::size_t own = at + kNextSource.size();
    const std::size_t end = unit.find('\n', own);
    sources.push_back({"", unit.substr(own, end - own)});
    begin = end + 1;
  }
  sources.back().text = unit.substr(begin);
  return sources;
}

std::string further(const Source& source) {
  std::string flags = source.flags;
  std::replace(flags.begin(), flags.end(), '\n', ' ');
  return kNextSource + flags + "\n" + source.text;
}

/// Finds integer divisions by zero, which other processors do not report: see ends.h.
#ifdef __x86_64__
const std::string kChecksDivisions;
#else
const std::string kChecksDivisions = "-fsanitize=integer-divide-by-zero ";
#endif

void compile(const std::string& source, const std::string& object, const std::string& flags,
             const char* inputs) {
  // Access control is off because fields are set from outside.
  runCompiler(kAddCodelets,
              {"-O3", "-c", "-fPIC", "-fvisibility=hidden", "-ffunction-sections",
               "-fno-access-control", "-ffp-contract=off", inputs, source, "-o", object},
              kChecksDivisions + flags);
}

/// Whether GCC or Clang complain about a write to something constant, and not about a mere cast.
bool tellsOfWrite(const std::string& message) {
  for (const char* words : {"read-only", "cannot assign to", "drops 'const' qualifier on write"})
    if (message.find(words) != std::string::npos) return true;
  return false;
}

std::size_t numErrors(const graph_program_compilation_error& error) {
  const std::string_view text = error.what();
  std::size_t count = 0;
  for (std::size_t at = 0; (at = text.find("error:", at)) != std::string_view::npos; ++at) ++count;
  return count;
}

/// Elements of inputs are constant, unless a source compiles only if they are not, yet writes none.
/// `compiles` takes the flag that says which.
void compileInputs(const std::function<void(const char* inputs)>& compiles) {
  try {
    return compiles("-DIPUJAX_CONST_INPUTS");
  } catch (const graph_program_compilation_error& error) {
    const std::string message = error.what();
    try {
      compiles("-UIPUJAX_CONST_INPUTS");
    } catch (const graph_program_compilation_error& other) {
      throw fewerErrors(error, other);  // the error has another cause
    }
    if (tellsOfWrite(message)) throw;
  }
}

/// Compiles in the first way or, if that fails with an error that the second may mend, in that.
template <class First, class Second, class May>
void compileEither(const First& first, const Second& second, const May& may_mend) {
  try {
    return first();
  } catch (const graph_program_compilation_error& error) {
    if (!may_mend(error.what())) throw;
    try {
      second();
    } catch (const graph_program_compilation_error& other) {
      throw fewerErrors(error, other);
    }
  }
}

/// Compiles as it is; or with calls in place of assembly that starts workers, and with the IPU's
/// builtins that headers found by -I may use.
void compileAsItIs(const std::string& source, const std::string& object, const std::string& flags) {
  const auto compile_calls = [&] {
    writeFile(source, withWorkersHeader(readFile(source)));
    const std::string preprocessed = source + ".ii";
    compileInputs([&](const char* inputs) {
      runCompiler(kAddCodelets, {"-E", inputs, source, "-o", preprocessed}, flags);
      writeFile(preprocessed, withWorkerCalls(withoutContexts(readFile(preprocessed))));
      compile(preprocessed, object, flags, "-fpreprocessed");
    });
  };
  const auto compile_plain = [&] {
    compileInputs([&](const char* inputs) { compile(source, object, flags, inputs); });
  };
  compileEither(compile_plain, compile_calls, [&](const char* message) {
    return isOfTheDevice(message) || hasAssembly(readFile(source));
  });
}

void compileOne(const std::string& source, const std::string& object, const std::string& flags) {
  const auto compile_braces = [&] {
    writeFile(source, withTypedBraces(readFile(source)));
    compileAsItIs(source, object, flags);
  };
  compileEither([&] { compileAsItIs(source, object, flags); }, compile_braces, wantsTypedBraces);
}

/// Compiles with the calls of BlockCounts.hpp, and those in place of assembly that starts workers.
void compileBlocks(const std::string& source, const std::string& object, const std::string& flags,
                   bool starts_workers) {
  const std::string preprocessed = source + ".ii";
  runCompiler(kAddCodelets, {"-E", "-DIPUJAX_CONST_INPUTS", source, "-o", preprocessed}, flags);
  std::string text = readFile(preprocessed);
  if (starts_workers) text = withWorkerCalls(withoutContexts(text));
  writeFile(preprocessed, withBlockCounts(text));
  compile(preprocessed, object, flags, "-fpreprocessed");
}

/// The same, or without counts if they do not compile: intrinsics count themselves.
void compileCounted(const std::string& source, const std::string& object,
                    const std::string& flags) {
  try {
    return compileBlocks(source, object, flags, false);
  } catch (const graph_program_compilation_error& error) {
    if (!isOfTheDevice(error.what())) return compileOne(source, object, flags);
  }
  const std::string text = readFile(source);
  writeFile(source, withWorkersHeader(text));
  try {
    return compileBlocks(source, object, flags, true);
  } catch (const graph_program_compilation_error&) {
    writeFile(source, text);
    compileOne(source, object, flags);
  }
}

/// Compiles as for a host; or, if that fails, as for an IPU: the rest of the source may need code
/// in branches for an IPU.
void compileFor(const std::string& text, const std::string& source, const std::string& object,
                const std::string& flags) {
  const auto compile_with = [&](const std::string& all) {
    writeFile(source, text);
    if (countsCycles(text))
      compileCounted(source, object, all);
    else
      compileOne(source, object, all);
  };
  compileEither([&] { compile_with(flags); }, [&] { compile_with(flags + kForIpu); },
                [&](const char*) { return mayBeForIpu(text, flags); });
}

/// See poplar/codelets/turns.h.
const char* const kTakesTurns = " -fsanitize-coverage=trace-pc -DIPUJAX_WORKERS_WAIT=1";

const std::string kCounts = "#define IPUJAX_COUNTS_CYCLES 1\n";

}  // namespace

const graph_program_compilation_error& fewerErrors(const graph_program_compilation_error& first,
                                                   const graph_program_compilation_error& second) {
  return numErrors(second) < numErrors(first) ? second : first;
}

bool mayBeForIpu(const std::string& text, const std::string& flags) {
  return text.find("__IPU__") != std::string::npos && flags.find("__IPU__") == std::string::npos;
}

bool countsCycles(const std::string& source) { return source.starts_with(kCounts); }

namespace {

/// Adds a line to each source, after the one that says that it counts.
std::string withLine(const std::string& unit, const std::string& line, bool counts) {
  std::string made;
  for (const auto& [text, flags] : sourcesOf(unit, "")) {
    const bool counted = countsCycles(text);
    const std::string changed =
        (counts || counted ? kCounts : "") + line + text.substr(counted ? kCounts.size() : 0);
    made += made.empty() ? changed : further({changed, flags});
  }
  return made;
}

}  // namespace

std::string withCycles(const std::string& unit) { return withLine(unit, "", true); }

std::string withHalves(const std::string& unit, unsigned mode) {
  return withLine(unit, "#define IPUJAX_HALF_ROUNDING " + std::to_string(mode) + "\n", false);
}

namespace {

/// See poplar/codelets/ends.h.
constexpr const char* kWrapped[] = {
    "abort",
    "exit",
    "_exit",
    "_Exit",
    "quick_exit",
    "pthread_exit",
    "fork",
    "vfork",
    "pthread_create",
    "thrd_create",
    "_ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE",
    "__cxa_atexit",
    "__cxa_at_quick_exit",
    "__cxa_thread_atexit",
    "__cxa_guard_acquire",
    "__cxa_guard_release",
    "__cxa_guard_abort"};

}  // namespace

void buildCodelets(const std::string& unit, const std::string& flags, const TemporaryFolder& folder,
                   const fs::path& result) {
  // Libraries do not see each other's symbols: -shared libraries with codelets of the same name are
  // loaded together.
  std::vector<std::string> link = {
      "-shared", "-Wl,-z,defs",  "-Wl,--gc-sections", "-Wl,--allow-multiple-definition",
      "-o",      result.string()};
  for (const char* name : kWrapped) link.push_back(std::string("-Wl,--wrap=") + name);
  int number = 0;
  bool take_turns = false;
  for (const auto& [text, own_flags] : sourcesOf(unit, flags)) {
    const fs::path source = folder / ("codelets" + std::to_string(number++) + ".cpp").c_str();
    const std::string object = source.string() + ".o";
    const bool waits = workersMayWait(text);
    take_turns |= waits;
    compileFor(text, source.string(), object, waits ? own_flags + kTakesTurns : own_flags);
    link.push_back(object);
  }
  if (take_turns) {
    const fs::path source = folder / "turns.cpp";
    writeFile(source, "#include <poplar/codelets/turns.h>\n");
    link.push_back(source.string() + ".o");
    compile(source.string(), link.back(), "", "-UIPUJAX_CONST_INPUTS");
  }
  runLinker(kAddCodelets, link);
  hideConstructors(result);
}

std::string withSources(const std::string& unit, const std::vector<const CodeletFile*>& others) {
  std::string all = unit;
  for (const CodeletFile* other : others) all += further({other->text, other->flags});
  return all;
}

}  // namespace ipujax::engine
