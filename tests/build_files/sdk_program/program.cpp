#include <cstdio>
#include <gcl/Collectives.hpp>
#include <poplar/Engine.hpp>
#include <poplar/Graph.hpp>
#include <poplar/IPUModel.hpp>
#include <poplin/MatMul.hpp>
#include <poplin/codelets.hpp>
#include <popops/ElementWise.hpp>
#include <popops/codelets.hpp>
#include <poputil/TileMapping.hpp>
#include <vector>

/// Doubles a matrix by a codelet from the file named first, squares it, adds 1 to it and prints it.
int main(int, char** argv) {
  poplar::Device device = poplar::IPUModel().createDevice();
  poplar::Graph graph(device.getTarget());
  popops::addCodelets(graph);
  poplin::addCodelets(graph);
  graph.addCodelets(argv[1]);
  poplar::Tensor a = graph.addVariable(poplar::FLOAT, {2, 2}, "a");
  graph.setTileMapping(a, 0);
  auto in = graph.addHostToDeviceFIFO("in", poplar::FLOAT, 4);
  auto out = graph.addDeviceToHostFIFO("out", poplar::FLOAT, 4);
  poplar::program::Sequence prog;
  prog.add(poplar::program::Copy(in, a));
  poplar::ComputeSet set = graph.addComputeSet("double");
  poplar::VertexRef vertex = graph.addVertex(set, "Double", {{"x", a.flatten()}});
  graph.setTileMapping(vertex, 0);
  graph.setPerfEstimate(vertex, 20);
  prog.add(poplar::program::Execute(set));
  poplar::Tensor b = poplin::matMul(graph, a, a, prog, "square");
  popops::addInPlace(graph, b, 1.0f, prog, "one");
  prog.add(poplar::program::Copy(b, out));
  poplar::Engine engine(graph, prog);
  std::vector<float> values = {1, 2, 3, 4};
  engine.connectStream("in", values.data(), values.data() + 4);
  engine.connectStream("out", values.data(), values.data() + 4);
  engine.load(device);
  engine.run(0);
  std::printf("%g %g %g %g\n", values[0], values[1], values[2], values[3]);
}
