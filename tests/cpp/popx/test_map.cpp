#include "Check.hpp"
#include "popops/OnDevice.hpp"
#include "popx/Map.hpp"

namespace pe = popops::expr;

TEST(several_outputs_in_one_step) {
  const auto mapped = [](OnDevice& d) {
    const auto a = d.iota({50, 20}).transpose();
    return popx::map(d.graph,
                     {pe::_1 + pe::_2, pe::_1 < pe::_2, pe::Cast(pe::_1, poplar::INT) * 3, pe::_2},
                     {a, a.reverse(0)}, d.prog, "many");
  };
  OnDevice first;
  const auto r = mapped(first);
  CHECK_EQ(r.size(), 4u);
  CHECK(r[1].elementType() == poplar::BOOL && r[2].elementType() == poplar::INT);
  const auto sum = first.read<float>(r[0]);
  OnDevice second;
  const auto third = second.read<int>(mapped(second)[2]);
  for (std::size_t i = 0; i < 20; ++i)
    for (std::size_t j = 0; j < 50; ++j) {
      CHECK_EQ(sum[i * 50 + j], static_cast<float>(j * 20 + i + j * 20 + 19 - i));
      CHECK_EQ(third[i * 50 + j], static_cast<int>(3 * (j * 20 + i)));
    }
}
