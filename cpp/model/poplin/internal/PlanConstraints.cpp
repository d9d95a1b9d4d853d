#include "poplin/internal/PlanConstraints.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "poplin/internal/ConstraintsJson.hpp"

namespace poplin {
namespace {

[[noreturn]] void refuse(const char* where, const std::string& needs, const std::string& got) {
  refuseConstraints(std::string("poplin::") + where, needs, got);
}

/// Throws the error for valid constraints that no plan meets.
[[noreturn]] void cannotMeet(const char* where, const std::string& needs, const std::string& got) {
  throw plan::no_plan(std::string("[poplin::") + where + "] needs planConstraints with " + needs +
                      "; got " + got + ". Relax them.");
}

/// The index of a level or an axis, "0" and so on; nullopt for another name.
std::optional<std::uint64_t> indexOf(const std::string& name) {
  if (name.empty() || name.size() > 3) return std::nullopt;
  std::uint64_t index = 0;
  for (const char c : name) {
    if (c < '0' || c > '9') return std::nullopt;
    index = 10 * index + static_cast<std::uint64_t>(c - '0');
  }
  return index;
}

/// The text for an error's "got".
std::string valueOf(const Json& json) {
  if (json.kind == Json::Kind::kObject) return "an object";
  if (json.kind == Json::Kind::kArray) return "a list";
  return "'" + json.text + "'";
}

/// Turns the members of each object into constraints.
class Reader {
 public:
  explicit Reader(const char* where) : where_(where) {}

  plan::Constraints read(const Json& json) {
    for (const auto& [name, value] : object("planConstraints", json)) {
      if (name == "method")
        found_.vertex = vertex(value);
      else if (name == "convGroupsPerGroup")
        found_.group_grain = count(name, value);
      else if (name == "inChansPerGroup")
        found_.in_grain = count(name, value);
      else if (name == "partialChansPerGroup")
        found_.out_grain = count(name, value);
      else if (name == "useLimitedVersion")
        boolean(name, value);  // vertices of the model address all of a tile
      else if (name == "0")
        level(value);
      else if (indexOf(name))
        cannotMeet(where_, "\"0\", the only level of a plan", "'" + name + "'");
      else
        refuse(where_,
               "method, convGroupsPerGroup, inChansPerGroup, partialChansPerGroup, "
               "useLimitedVersion or \"0\", the only level of a plan",
               "'" + name + "'");
    }
    return found_;
  }

 private:
  using Members = std::vector<std::pair<std::string, Json>>;

  const Members& object(const std::string& name, const Json& json) {
    if (json.kind != Json::Kind::kObject) refuse(where_, name + " to be an object", valueOf(json));
    return json.members;
  }

  std::uint64_t count(const std::string& name, const Json& json) {
    const auto found = countOf(json);
    if (!found) refuse(where_, name + " to be a whole number from 1", valueOf(json));
    return *found;
  }

  bool boolean(const std::string& name, const Json& json) {
    if (json.kind != Json::Kind::kBool)
      refuse(where_, name + " to be true or false", valueOf(json));
    return json.text == "true";
  }

  std::optional<plan::Vertex> vertex(const Json& json) {
    for (const auto known : {plan::Vertex::kAmp, plan::Vertex::kSlic, plan::Vertex::kHorizontalMac,
                             plan::Vertex::kVerticalMac, plan::Vertex::kOuterProduct})
      if (json.kind == Json::Kind::kString && json.text == plan::nameOf(known)) return known;
    refuse(where_, "method to be AMP, SLIC, HMAC, VMAC or OUTER_PRODUCT", valueOf(json));
  }

  void level(const Json& json) {
    for (const auto& [name, value] : object("\"0\"", json)) {
      if (name == "transform")
        transform(value);
      else if (name == "partition")
        partition(value);
      else
        refuse(where_, "transform or partition in \"0\"", "'" + name + "'");
    }
  }

  void transform(const Json& json) {
    for (const auto& [name, value] : object("transform", json)) {
      if (name == "swapOperands") {
        found_.swapped = boolean(name, value);
      } else if (name == "expandDims" && value.kind == Json::Kind::kArray) {
        found_.expanded = !value.items.empty();  // all axes of the kernel are expanded, or none
      } else if (name == "outChanFlattenDims" && value.kind == Json::Kind::kArray) {
        if (!value.items.empty())
          cannotMeet(where_, "outChanFlattenDims of [], as in all plans", "more");
      } else if (name == "combineConvGroupsFactor" && value.kind == Json::Kind::kArray) {
        for (const Json& factor : value.items)
          if (count(name, factor) != 1)
            cannotMeet(where_, "combineConvGroupsFactor of [1], as in all plans", "more");
      } else {
        refuse(where_,
               "swapOperands: true or false, or the lists expandDims, outChanFlattenDims or "
               "combineConvGroupsFactor in transform",
               "'" + name + "'");
      }
    }
  }

  void partition(const Json& json) {
    for (const auto& [name, value] : object("partition", json)) {
      if (name == "convGroupSplit")
        found_.group_split = count(name, value);
      else if (name == "batchSplit")
        multiplyRows(found_.batch_split = count(name, value));
      else if (name == "fieldSplit")
        for (const auto& [axis, part] : object(name, value)) field(axis, count(name, part));
      else if (name == "kernelSplit")
        kernel(value);
      else if (name == "inChanSplit")
        split(name, value, found_.in_split, found_.in_serial);
      else if (name == "outChanSplit")
        split(name, value, found_.out_split, found_.out_serial);
      else
        refuse(where_,
               "convGroupSplit, batchSplit, fieldSplit, kernelSplit, inChanSplit or outChanSplit "
               "in partition",
               "'" + name + "'");
    }
    if (found_.in_serial > 1 && found_.out_serial > 1)
      cannotMeet(where_, "serial slices of input or of output channels", "slices of both");
  }

  void field(const std::string& axis, std::uint64_t parts) {
    const auto index = indexOf(axis);
    if (!index) refuse(where_, "fieldSplit of axes \"0\", \"1\" and so on", "'" + axis + "'");
    if (found_.field_split.size() <= *index) found_.field_split.resize(*index + 1);
    found_.field_split[*index] = parts;
    multiplyRows(parts);
  }

  void multiplyRows(std::uint64_t by) {
    constexpr std::uint64_t kMost = std::uint64_t{1} << 24;
    found_.rows_multiple = std::max<std::uint64_t>(found_.rows_multiple, 1) * by;
    if (found_.rows_multiple > kMost) cannotMeet(where_, "fewer parts than tiles", "more");
  }

  void kernel(const Json& json) {
    for (const auto& [dim, part] : object("kernelSplit", json))
      if (count("kernelSplit", part) != 1)
        cannotMeet(where_, "kernelSplit of 1: a kernel is on each tile as a whole", "more");
  }

  void split(const std::string& name, const Json& json, std::uint64_t& parallel,
             std::uint64_t& serial) {
    if (json.kind == Json::Kind::kNumber) {
      parallel = count(name, json);
      return;
    }
    for (const auto& [kind, value] : object(name, json)) {
      if (kind != "parallel" && kind != "serial")
        refuse(where_, "parallel or serial in " + name, "'" + kind + "'");
      (kind == "serial" ? serial : parallel) = count(name, value);
    }
  }

  const char* where_;
  plan::Constraints found_;
};

}  // namespace

plan::Constraints readConstraints(const char* where, const std::string& json) {
  return Reader(where).read(readConstraintsJson(std::string("poplin::") + where, json));
}

}  // namespace poplin
