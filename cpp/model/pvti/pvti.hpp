#pragma once
#include <cstddef>
#include <string>
#include <utility>

/// PopVision's trace points. Nothing records them here: programs run as without them.
namespace pvti {

/// A group of trace points.
struct TraceChannel {
  TraceChannel(std::string name) : name(std::move(name)) {}            // NOLINT: as in the SDK
  TraceChannel(const char* name) : TraceChannel(std::string(name)) {}  // NOLINT
  const std::string name;
};

/// Data that a program attaches to a trace point.
struct Metadata {};

/// An interval of host time: the lifetime of an object, or from begin to end.
class Tracepoint {
 public:
  Tracepoint(const TraceChannel*, const std::string&) {}
  Tracepoint(const TraceChannel*, const char* /*name*/, std::size_t /*length*/) {}
  Tracepoint(const TraceChannel*, const char* /*name*/, std::size_t /*length*/, const Metadata*) {}
  Tracepoint(const Tracepoint&) = delete;
  Tracepoint& operator=(const Tracepoint&) = delete;
  ~Tracepoint() {}  // NOLINT: not trivial, or compilers warn of unused objects
  static void begin(const TraceChannel*, const std::string&) {}
  static void end(const TraceChannel*, const std::string&) {}
  static void event(const TraceChannel*, const std::string&) {}
};

/// One line of a Graph.
class Series {
 public:
  void add(double) {}
};

/// A plot of numbers over time.
class Graph {
 public:
  Graph(std::string name, std::string unit) : name_(std::move(name)), unit_(std::move(unit)) {}
  Series addSeries(const std::string&) { return {}; }
  const std::string& name() const { return name_; }
  const std::string& unit() const { return unit_; }

 private:
  std::string name_;
  std::string unit_;
};

}  // namespace pvti
