#include <map>
#include <poplar/Engine.hpp>
#include <poplar/Graph.hpp>
#include <sstream>

#include "Check.hpp"
#include "Fixture.hpp"

/// IPU inline assembly in codelets: what hosts can do with it, and the errors that they report for
/// the rest.
using namespace poplar;

namespace {

/// The field `out` after running one vertex of a type of the source.
std::vector<float> run(const std::string& source, const std::string& type) {
  Fixture f;
  std::istringstream text(source);
  f.graph.addCodelets(text);
  const Tensor out = f.graph.addVariable(FLOAT, {1});
  const ComputeSet cs = f.graph.addComputeSet();
  const VertexRef v = f.graph.addVertex(cs, type, {{"out", out}});
  f.graph.setTileMapping(v, 1);
  f.graph.setTileMapping(out, 1);
  f.prog.add(program::Execute(cs));
  return f.run<float>(out);
}

}  // namespace

TEST(other_assembly_of_an_ipu_is_refused_with_its_instruction_where_a_vertex_needs_it) {
  const char* const source = R"src(
#include <poplar/Vertex.hpp>
#ifdef __IPU__
#include <ipu_builtins.h>
#endif
    class Plain : public poplar::Vertex {
     public:
      poplar::Output<poplar::Vector<float>> out;
      bool compute() {
        asm volatile("nop \n");
        out[0] = __builtin_ipu_isnan_f32(out[0]) ? 1 : 3;
        return true;
      }
    };
    class Waits : public poplar::SupervisorVertex {
     public:
      poplar::Output<poplar::Vector<float>> out;
      bool compute() {
        asm volatile("delay 7 \n sync 1" :::);
        out[0] = 1;
        return true;
      }
    };
    class Adds : public poplar::Vertex {
     public:
      poplar::Output<poplar::Vector<float>> out;
      bool compute() {
        register float* to asm("$m2") = &out[0];
        asm(R"(
          # three of them
          LOOP%=:
          f32add $a0, $azero, $azero
          st32step $a0, $mzero, %[to]+=, %[step] )"
            : : [to] "r"(to), [step] "i"(TAMP_STEP) : "memory", "$a0", "$m4:5");
        return true;
      }
    };
    class Loads : public poplar::SupervisorVertex {
     public:
      poplar::Output<poplar::Vector<float>> out;
      bool compute() {
        __builtin_ipu_ld128putcs(4);
        return true;
      }
    };)src";
  for (const auto& [type, instruction] : std::map<std::string, std::string>{
           {"Waits", "delay"}, {"Adds", "f32add"}, {"Loads", "ld128putcs"}})
    CHECK_THROWS(run(source, type), "inline assembly of an IPU (" + instruction + ")");
  CHECK(run(source, "Plain") == std::vector<float>{3});
}
