// A header that adds codelets is enough to make the graph that they are added to, as in the SDK:
// nothing here may include more of Poplar than these.
#include <popfloat/experimental/codelets.hpp>
#include <poplar/IPUModel.hpp>
#include <poplin/codelets.hpp>
#include <popnn/codelets.hpp>
#include <popops/codelets.hpp>
#include <poprand/codelets.hpp>
#include <popsparse/codelets.hpp>
#include <popsys/codelets.hpp>
#include <thread>

#include "Check.hpp"

TEST(headers_of_codelets_have_graphs_and_threads_make_their_own) {
  std::vector<std::thread> threads;
  std::vector<int> made(4);
  for (int& tiles : made) {
    threads.emplace_back([&tiles] {
      poplar::Graph graph(poplar::IPUModel().createDevice());
      popops::addCodelets(graph);
      poplin::addCodelets(graph);
      popnn::addCodelets(graph);
      poprand::addCodelets(graph);
      popsparse::addCodelets(graph);
      popfloat::experimental::addCodelets(graph);
      popsys::addCodelets(graph);
      tiles = static_cast<int>(graph.getTarget().getNumTiles());
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const int tiles : made) CHECK_EQ(tiles, 1472);
}
