#include "popx/hardware/Window.hpp"

#include <string>

#include "poplar/exceptions.hpp"

namespace popx::windows {

void check(const char* where, const Window& w, std::size_t rank) {
  const auto refuse = [&](const std::string& needs, const std::string& got) {
    throw poplar::poplar_error("[" + std::string(where) + "] needs " + needs + "; got " + got +
                               ". Check the window.");
  };
  for (const auto* v : {&w.sizes, &w.strides, &w.base_dilations, &w.window_dilations,
                        &w.padding_low, &w.padding_high})
    if (v->size() != rank)
      refuse(std::to_string(rank) + " numbers, one a dimension", std::to_string(v->size()));
  for (const auto* v : {&w.sizes, &w.strides, &w.base_dilations, &w.window_dilations})
    for (const auto number : *v)
      if (number < 1) refuse("sizes, strides and dilations of 1 or more", std::to_string(number));
}

}  // namespace popx::windows
