#include <algorithm>
#include <cstdlib>
#include <iostream>

#include "engine/graph/GraphImpl.hpp"
#include "poplar/Tensor.hpp"

/// The elements of variables that tensors refer to.
namespace poplar {

using ipujax::engine::View;

namespace {

/// True if the strides alone show that no two indices coincide; false shows nothing.
bool stridesKeepApart(const View& view) {
  std::vector<std::pair<std::int64_t, std::int64_t>> dims;  // |stride|, size
  for (std::size_t i = 0; i < view.shape.size(); ++i) {
    if (view.shape[i] > 1)
      dims.emplace_back(std::abs(view.strides[i]), static_cast<std::int64_t>(view.shape[i]));
  }
  std::sort(dims.begin(), dims.end());
  std::int64_t reach = 0;  // farthest element of the smaller dimensions
  for (const auto& [stride, size] : dims) {
    if (stride <= reach) return false;
    reach += stride * (size - 1);
  }
  return true;
}

bool repeatsElements(const View& view) {
  for (std::size_t i = 0; i < view.shape.size(); ++i) {
    if (view.shape[i] > 1 && view.strides[i] == 0) return view.numElements() > 0;
  }
  return false;
}

template <typename F>
void forEachVariable(const View& view, const F& fn) {
  if (view.isStrided()) return fn(view.variable);
  for (const View& piece : view.pieces->views) forEachVariable(piece, fn);
}

}  // namespace

bool Tensor::isContiguous() const {
  if (v().isStrided()) return v().isContiguous();
  return getContiguousRegions().size() == 1;
}

bool Tensor::isParallelWriteable() const {
  if (repeatsElements(v())) return false;
  if (v().isStrided() && stridesKeepApart(v())) return true;
  std::vector<std::pair<std::uint64_t, std::size_t>> runs;
  forEachRun(v(), [&](std::uint32_t variable, std::int64_t begin, std::size_t length) {
    runs.emplace_back((std::uint64_t{variable} << 40) + static_cast<std::uint64_t>(begin), length);
  });
  std::sort(runs.begin(), runs.end());
  for (std::size_t i = 1; i < runs.size(); ++i) {
    if (runs[i - 1].first + runs[i - 1].second > runs[i].first) return false;
  }
  return true;
}

bool Tensor::containsConstant() const {
  if (v().isStrided()) return graph_->variables[v().variable].is_constant;
  bool found = false;
  forEachRun(v(), [&](std::uint32_t variable, std::int64_t, std::size_t) {
    found = found || graph_->variables[variable].is_constant;
  });
  return found;
}

bool Tensor::intersectsWith(const Tensor& other) const {
  std::vector<bool> mine;
  forEachVariable(v(), [&](std::uint32_t variable) {
    if (mine.size() <= variable) mine.resize(variable + 1);
    mine[variable] = true;
  });
  bool found = false;
  forEachVariable(other.v(), [&](std::uint32_t variable) {
    found = found || (variable < mine.size() && mine[variable]);
  });
  return found;
}

std::vector<VariableInterval> Tensor::getVarRegions() const {
  std::vector<VariableInterval> regions;
  forEachRun(v(), [&](std::uint32_t variable, std::int64_t begin, std::size_t length) {
    const auto first = static_cast<std::size_t>(begin);
    if (!regions.empty() && regions.back().var.id == variable &&
        regions.back().interval.end() == first)
      regions.back().interval = {regions.back().interval.begin(), first + length};
    else
      regions.emplace_back(VariableRef(variable), Interval(first, first + length));
  });
  return regions;
}

std::vector<Interval> Tensor::getContiguousRegions() const {
  std::vector<Interval> regions;
  std::size_t position = 0;
  std::uint32_t last_variable = ~0u;
  std::int64_t last_end = -1;
  forEachRun(v(), [&](std::uint32_t variable, std::int64_t begin, std::size_t length) {
    if (variable == last_variable && begin == last_end) {
      regions.back() = {regions.back().begin(), regions.back().end() + length};
    } else {
      regions.emplace_back(position, position + length);
    }
    position += length;
    last_variable = variable;
    last_end = begin + static_cast<std::int64_t>(length);
  });
  return regions;
}

std::string Tensor::getDebugStr() const {
  return v().isStrided() ? graph_->variables[v().variable].debug.getPathName() : "";
}

void Tensor::outputRegions(std::ostream& os) const {
  for (const auto& [var, interval] : getVarRegions())
    os << "variable " << var.id << " " << interval << '\n';
}

void Tensor::dumpRegions() const { outputRegions(std::cout); }

std::string Tensor::getVarStr() const {
  std::string names;
  std::uint32_t last = ~0u;
  forEachVariable(v(), [&](std::uint32_t variable) {
    if (variable == last) return;
    names += (names.empty() ? "" : ", ") + graph_->variables[variable].debug.getPathName();
    last = variable;
  });
  return names;
}

}  // namespace poplar
