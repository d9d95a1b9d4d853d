#include "poplar/internal/GraphProfile.hpp"

#include <algorithm>
#include <cctype>
#include <map>
#include <ostream>
#include <string_view>

#include "engine/account/VertexCounts.hpp"
#include "poplar/Engine.hpp"
#include "poplar/internal/EngineProfile.hpp"

namespace poplar::internal {

using ipujax::engine::Image;
using ipujax::engine::Node;
using ipujax::engine::NodeKind;
using ipujax::engine::StepDesc;
using ipujax::engine::TilePart;

namespace {

/// "host copy buffers" as "hostCopyBuffers".
std::string keyOf(std::string_view name) {
  std::string key;
  for (const char c : name) {
    const bool begins_word = key.ends_with(' ');
    if (begins_word) key.pop_back();
    key += begins_word ? static_cast<char>(std::toupper(c)) : c;
  }
  return key;
}

ProfileValue partsOf(const ipujax::engine::TileParts& parts) {
  ProfileValue::Map found;
  for (std::size_t i = 0; i < parts.bytes.size(); ++i)
    found.emplace(keyOf(ipujax::engine::kPartNames[i]), parts.bytes[i]);
  return found;
}

std::size_t numIpus(const Image& image) { return std::max<std::size_t>(1, image.ipus.size()); }

ProfileValue targetOf(const Image& image) {
  const std::uint64_t bytes = image.memory.tile_capacity;
  const std::size_t tiles = image.num_tiles / numIpus(image);
  return ProfileValue::Map{{"type", "IPU_MODEL"},
                           {"numIPUs", numIpus(image)},
                           {"numReplicas", std::uint64_t{image.signature.num_replicas}},
                           {"numTiles", image.num_tiles},
                           {"tilesPerIPU", tiles},
                           {"bytesPerTile", bytes},
                           {"bytesPerIPU", bytes * tiles},
                           {"totalMemory", bytes * image.num_tiles},
                           {"clockFrequency", image.clock_hz}};
}

std::string nameOf(const Image& image, const StepDesc& step) {
  return step.debug < image.debug.size() ? image.debug[step.debug].name : std::string();
}

/// Compute steps by position in the image, and the vertices of each.
struct ComputeSets {
  explicit ComputeSets(const Image& image) : vertices(ipujax::engine::countVertices(image)) {
    for (const auto& [type, each] : vertices) types.emplace(type, types.size());
    for (std::size_t i = 0; i < image.steps.size(); ++i)
      if (image.steps[i].cost.compute_cycles > 0) add(image, i);
  }

  std::map<std::string, std::size_t> types;
  ipujax::engine::VertexCounts vertices;
  std::map<std::size_t, std::size_t> of_step;
  ProfileValue::Vector names, vertex_counts, vertex_types;

 private:
  void add(const Image& image, std::size_t index) {
    ProfileValue::Vector counts, kinds;
    for (const auto& [type, each] : ipujax::engine::countVerticesOfStep(image, index)) {
      kinds.emplace_back(types.at(type));
      counts.emplace_back(each.count);
    }
    of_step.emplace(index, names.size());
    names.emplace_back(nameOf(image, image.steps[index]));
    vertex_counts.emplace_back(std::move(counts));
    vertex_types.emplace_back(std::move(kinds));
  }
};

const char* typeOf(const Image& image, const Node& node) {
  switch (node.kind) {
    case NodeKind::kSequence:
      return "Sequence";
    case NodeKind::kRepeat:
      return "Repeat";
    case NodeKind::kRepeatWhile:
      return "RepeatWhile";
    case NodeKind::kIf:
      return "If";
    case NodeKind::kSwitch:
      return "Switch";
    case NodeKind::kError:
      return "AbortOnCondition";
    case NodeKind::kStep:
      break;
  }
  const auto& cost = image.steps[node.value].cost;
  return cost.compute_cycles > 0 ? "OnTileExecute"
                                 : (cost.host_cycles > 0 ? "StreamCopy" : "DoExchange");
}

ProfileValue programsOf(const Image& image, const ComputeSets& sets) {
  ProfileValue::Vector programs;
  for (const Node& node : image.nodes) {
    ProfileValue::Map program{{"type", typeOf(image, node)}};
    if (!node.children.empty())
      program.emplace("children", ProfileValue::Vector(node.children.begin(), node.children.end()));
    if (node.kind == NodeKind::kRepeat) program.emplace("count", node.value);
    if (node.kind == NodeKind::kStep) {
      program.emplace("name", nameOf(image, image.steps[node.value]));
      if (const auto set = sets.of_step.find(node.value); set != sets.of_step.end())
        program.emplace("computeset", set->second);
    }
    programs.emplace_back(std::move(program));
  }
  return programs;
}

/// Bytes of each tile when the fullest tile of its IPU is fullest.
ProfileValue byTile(const ipujax::engine::Profile& profile, std::size_t num_tiles) {
  const std::size_t tiles = num_tiles / profile.ipus.size();
  ProfileValue::Vector total, including;
  for (std::size_t tile = 0; tile < num_tiles; ++tile) {
    const auto& bytes = profile.ipus[tile / tiles].tile_bytes;
    const auto of = [&](std::size_t part) { return bytes[part * tiles + tile % tiles]; };
    std::uint64_t sum = 0;
    for (std::size_t part = 0; part < ipujax::engine::kPartNames.size(); ++part) sum += of(part);
    including.emplace_back(sum);
    total.emplace_back(sum - of(static_cast<std::size_t>(TilePart::kPadding)));
  }
  return ProfileValue::Map{{"total", std::move(total)},
                           {"totalIncludingGaps", std::move(including)}};
}

/// Bytes on all tiles, in the order of the types.
ProfileValue byVertexType(const ComputeSets& sets) {
  ProfileValue::Vector code, data;
  for (const auto& [type, each] : sets.vertices) {
    code.emplace_back(each.code_bytes);
    data.emplace_back(each.state_bytes);
  }
  return ProfileValue::Map{{"codeBytes", std::move(code)}, {"vertexDataBytes", std::move(data)}};
}

ProfileValue memoryOf(const Image& image, const ComputeSets& sets) {
  const auto& memory = image.memory;
  ProfileValue::Vector ipus;
  for (const auto& ipu : image.ipus) {
    ipus.push_back(ProfileValue::Map{{"fullestTileBytes", ipu.worst_tile_bytes},
                                     {"fullestTile", partsOf(ipu.worst_tile)}});
  }
  ProfileValue::Map value{{"fullestTile", memory.worst_tile},
                          {"fullestTileBytes", memory.worst_tile_bytes},
                          {"alwaysLiveBytes", memory.always_live_bytes},
                          {"peakLiveBytes", memory.peak_live_bytes},
                          {"vertexStateBytes", memory.vertex_state_bytes},
                          {"codeBytes", memory.code_bytes},
                          {"byVertexType", byVertexType(sets)},
                          {"ipus", std::move(ipus)}};
  if (image.profile && !image.profile->ipus.empty())
    value.emplace("byTile", byTile(*image.profile, image.num_tiles));
  return value;
}

}  // namespace

ProfileValue graphProfile(const Image& image) {
  ComputeSets sets(image);
  ProfileValue::Vector types;
  for (const auto& [type, index] : sets.types) types.emplace_back(type);
  ProfileValue::Map graph{{"numVars", image.buffers.size()},
                          {"numComputeSets", sets.names.size()},
                          {"numVertices", numVertices(sets.vertices)},
                          {"numSteps", image.steps.size()},
                          {"numPrograms", image.entry_points.size()}};
  ProfileValue programs = programsOf(image, sets);
  ProfileValue memory = memoryOf(image, sets);
  return ProfileValue::Map{
      {"target", targetOf(image)},
      {"graph", std::move(graph)},
      {"vertexTypes", ProfileValue::Map{{"names", std::move(types)}}},
      {"computeSets", ProfileValue::Map{{"names", std::move(sets.names)},
                                        {"vertexCounts", std::move(sets.vertex_counts)},
                                        {"vertexTypes", std::move(sets.vertex_types)}}},
      {"programs", std::move(programs)},
      {"memory", std::move(memory)},
      {"longestProgram", accountOf(image.cost())}};
}

}  // namespace poplar::internal

namespace poplar {

void printGraphSummary(std::ostream& os, const ProfileValue& graphProfile, const OptionFlags&) {
  const auto& target = graphProfile["target"];
  const auto& graph = graphProfile["graph"];
  const auto& account = graphProfile["longestProgram"];
  const auto& memory = graphProfile["memory"];
  os << "Target:\n  Number of IPUs:         " << target["numIPUs"]
     << "\n  Tiles per IPU:          " << target["tilesPerIPU"]
     << "\n  Total Tiles:            " << target["numTiles"]
     << "\n  Number of Replicas:     " << target["numReplicas"]
     << "\nGraph:\n  Number of vertices:     " << graph["numVertices"]
     << "\n  Number of variables:    " << graph["numVars"]
     << "\n  Number of compute sets: " << graph["numComputeSets"] << "\n";
  const auto& sets = graphProfile["computeSets"];
  const auto& types = graphProfile["vertexTypes"]["names"];
  for (std::size_t i = 0; i < sets["names"].size(); ++i) {
    os << "    " << sets["names"][i].asString();
    for (std::size_t j = 0; j < sets["vertexTypes"][i].size(); ++j)
      os << (j == 0 ? ": " : ", ") << types[sets["vertexTypes"][i][j].asUint()].asString() << " ("
         << sets["vertexCounts"][i][j] << ")";
    os << "\n";
  }
  os << "Cycles (longest program): " << account["cycles"] << " (compute "
     << account["computeCycles"] << ", exchange " << account["exchangeCycles"] << ", sync "
     << account["syncCycles"] << ")\n"
     << "Exchange bytes: " << account["exchangeBytes"] << "\n"
     << "Memory on the fullest tile (" << memory["fullestTile"]
     << "): " << memory["fullestTileBytes"] << " of " << target["bytesPerTile"] << " bytes\n";
}

}  // namespace poplar
