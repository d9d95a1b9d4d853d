#pragma once
#include <map>
#include <string>
#include <vector>

namespace ipujax::engine {

/// One class of a codelet's source that derives from a vertex base.
struct CodeletClass {
  std::string name;  ///< "ns::Foo"
  bool is_template = false;
  bool declares_constructor = false;  ///< one without arguments, not defined there
  std::vector<std::string> fields;    ///< in order, those of codelet bases first
  std::vector<std::string> assigned;  ///< names that the class's own text writes to
  double loop_cycles = 0;             ///< for one element, see LoopCost.hpp
};

struct CodeletSource {
  std::map<std::string, CodeletClass> classes;
  std::vector<std::string> types;  ///< complete types: "ns::Foo<float>", instantiations included
};

/// Finds the codelets of preprocessed C++ text: class declarations and explicit instantiations.
/// It understands only as much of the language as that takes.
CodeletSource parseCodelets(const std::string& preprocessed);

/// "Foo<float,true>" from any spelling: blanks only between words, "unsigned int" as "unsigned".
std::string normaliseTypeName(const std::string& name);

}  // namespace ipujax::engine
