#include <utility>

#include "engine/graph/GraphImpl.hpp"

// The functions of GraphImpl for replicas within a replica: variables that exist several times.
namespace ipujax::engine {
namespace {

TileMapPtr mapOfPart(const TileMap& map, const Parts& parts, unsigned part) {
  std::vector<TileMap::Region> regions = map.regions;
  for (auto& region : regions) {
    if (region.tile == TileMap::kUnmapped || region.tile < parts.first_tile) continue;
    region.tile =
        parts.first_tile + (region.tile - parts.first_tile) % parts.tiles + part * parts.tiles;
  }
  return tileMapOf(map.elements, std::move(regions));
}

}  // namespace

const Variable& GraphImpl::firstWithParts(const View& view) const {
  static const Variable none;
  if (view.isStrided())  // a variable of another graph is refused where the program is flattened
    return view.variable < variables.size() ? variables[view.variable] : none;
  const auto& views = view.pieces->views;
  for (const View& piece : views) {
    const Variable& found = firstWithParts(piece);
    if (found.parts.count > 1) return found;
  }
  return views.empty() ? none : firstWithParts(views.front());
}

unsigned GraphImpl::partsOf(const View& view) const { return firstWithParts(view).parts.count; }

const GraphImpl::MadeParts& GraphImpl::partsOfVariable(std::uint32_t variable) {
  MadeParts& made = parts_[variable];
  const unsigned count = variables[variable].parts.count;
  while (made.variables.size() < count) {
    Variable part = variables[variable];
    part.parts = {};
    part.values.clear();
    variables.push_back(std::move(part));
    made.variables.push_back(static_cast<std::uint32_t>(variables.size() - 1));
  }
  return made;
}

View GraphImpl::partOf(const View& view, unsigned part) {
  View moved = view;
  if (view.isStrided()) {
    if (variables[view.variable].parts.count > 1)
      moved.variable = partsOfVariable(view.variable).variables.at(part);
    return moved;
  }
  auto pieces = std::make_shared<Pieces>(*view.pieces);
  for (View& piece : pieces->views) piece = partOf(piece, part);
  moved.pieces = std::move(pieces);
  return moved;
}

ViewPtr GraphImpl::partOf(const ViewPtr& view, unsigned part) {
  return partsOf(*view) > 1 ? share(partOf(*view, part)) : view;
}

ViewPtr GraphImpl::allParts(const ViewPtr& view) {
  std::vector<std::size_t> shape = view->shape;
  shape.insert(shape.begin(), 1);
  const unsigned count = partsOf(*view);
  std::vector<View> all;
  for (unsigned part = 0; part < count; ++part)
    all.push_back(reshapeView(*partOf(view, part), shape));
  finishParts();
  return share(count == 1 ? all.front() : concatViews(all, 0));
}

void GraphImpl::finishParts() {
  for (auto& [variable, made] : parts_) {
    const Variable& from = variables[variable];
    const bool is_moved = std::exchange(made.last_map, from.map) != from.map;
    for (unsigned i = 0; i < made.variables.size(); ++i) {
      Variable& to = variables[made.variables[i]];
      if (is_moved) to.map = mapOfPart(*from.map, from.parts, i);
      to.is_constant = from.is_constant;
      if (to.is_constant) to.values = from.values;
    }
  }
}

void GraphImpl::makeParts() {
  const auto count = static_cast<std::uint32_t>(variables.size());
  for (std::uint32_t v = 0; v < count; ++v)
    if (variables[v].parts.count > 1) partsOfVariable(v);
  finishParts();
}

}  // namespace ipujax::engine
