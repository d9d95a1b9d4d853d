#include <cmath>
#include <random>

#include "Twins.hpp"
#include "popx/DynamicSlice.hpp"
#include "popx/Gather.hpp"
#include "popx/Map.hpp"
#include "popx/Reduce.hpp"
#include "popx/ReduceWindow.hpp"
#include "popx/Scatter.hpp"
#include "popx/SelectAndScatter.hpp"
#include "popx/Sort.hpp"

namespace TWINS {

namespace {

namespace pe = popx::expr;
using poplar::Graph;
using poplar::Type;
using poplar::program::Sequence;
using Shape = std::vector<std::size_t>;
using Tensors = Twin::Tensors;

std::size_t sizeOf(const Shape& shape) {
  std::size_t size = 1;
  for (const auto d : shape) size *= d;
  return size;
}

/// Integers, many of which are equal.
template <class T>
Twin::Value numbers(Type type, const Shape& shape, int least, int most, unsigned seed = 1) {
  std::mt19937 engine(seed);
  std::uniform_int_distribution<int> any(least, most);
  std::vector<T> values(sizeOf(shape));
  for (auto& x : values) x = static_cast<T>(any(engine));
  return valueOf(type, shape, values);
}

Twin::Value floats(const Shape& shape, unsigned seed) {
  auto value = numbers<float>(poplar::FLOAT, shape, -9, 9, seed);
  const float special[] = {NAN, -0.0f, 0.0f, -NAN, INFINITY, -INFINITY};
  for (std::size_t i = 0; i < 6 && 4 * i + 4 <= value.bytes.size(); ++i)
    std::memcpy(value.bytes.data() + 4 * i, &special[i], 4);
  return value;
}

Twin::Value halves(const Shape& shape) {
  auto value = numbers<std::uint16_t>(poplar::HALF, shape, 0, 0xffff);
  return value;
}

template <class T>
Twin gathered(const std::string& name, Type type, const popx::GatherDims& dims,
              const Shape& operand, const Shape& indices, int least = -3) {
  return {"gather " + name,
          {numbers<float>(poplar::FLOAT, operand, -99, 99), numbers<T>(type, indices, least, 9)},
          [=](Graph& g, const Tensors& in, Sequence& p) -> Tensors {
            return {popx::gather(g, in[0], in[1], dims, p)};
          }};
}

}  // namespace

std::vector<Twin> gathers() {
  popx::GatherDims rows;
  rows.offset_dims = {1};
  rows.collapsed_slice_dims = {0};
  rows.start_index_map = {0};
  rows.index_vector_dim = 1;
  rows.slice_sizes = {1, 4};
  popx::GatherDims windows;
  windows.offset_dims = {0, 2};
  windows.start_index_map = {1, 0};
  windows.index_vector_dim = 0;
  windows.slice_sizes = {2, 3};
  popx::GatherDims whole;
  whole.offset_dims = {1, 2};
  whole.index_vector_dim = 1;
  whole.slice_sizes = {5, 4};
  popx::GatherDims batched;
  batched.offset_dims = {2};
  batched.collapsed_slice_dims = {1};
  batched.operand_batching_dims = {0};
  batched.start_indices_batching_dims = {1};
  batched.start_index_map = {1};
  batched.index_vector_dim = 2;
  batched.slice_sizes = {1, 1, 2};
  popx::GatherDims nested;
  nested.collapsed_slice_dims = {2};
  nested.operand_batching_dims = {0, 1};
  nested.start_indices_batching_dims = {2, 0};
  nested.start_index_map = {2};
  nested.index_vector_dim = 3;
  nested.slice_sizes = {1, 1, 1};
  using Byte = signed char;
  using Ubyte = unsigned char;
  return {gathered<int>("rows", poplar::INT, rows, {5, 4}, {7}),
          gathered<unsigned>("rows by UNSIGNED_INT", poplar::UNSIGNED_INT, rows, {5, 4}, {7}, 0),
          gathered<Byte>("rows by SIGNED_CHAR", poplar::SIGNED_CHAR, rows, {300, 4}, {7}),
          gathered<Ubyte>("rows by UNSIGNED_CHAR", poplar::UNSIGNED_CHAR, rows, {5, 4}, {7}, 0),
          gathered<long long>("rows by LONGLONG", poplar::LONGLONG, rows, {5, 4}, {7}),
          gathered<int>("no rows", poplar::INT, rows, {5, 4}, {0}),
          gathered<int>("windows", poplar::INT, windows, {5, 6}, {2, 8}),
          gathered<int>("the whole", poplar::INT, whole, {5, 4}, {3, 0}),
          gathered<int>("a batch", poplar::INT, batched, {3, 5, 2}, {4, 3, 1}),
          gathered<short>("a batch by SHORT", poplar::SHORT, batched, {3, 5, 2}, {4, 3, 1}),
          gathered<int>("two batches", poplar::INT, nested, {3, 2, 7}, {2, 4, 3})};
}

std::vector<Twin> maps() {
  const auto run = [](Graph& g, const Tensors& in, Sequence& p) {
    return popx::map(g, {pe::_1 + pe::_2, pe::_1 < pe::_2, pe::Cast(pe::_1, poplar::INT), pe::_2},
                     in, p);
  };
  return {{"map of a row and a column",
           {numbers<float>(poplar::FLOAT, {4, 1}, -9, 9), numbers<float>(poplar::FLOAT, {3}, 0, 9)},
           run}};
}

namespace {

/// Bodies on one FLOAT, and one on a FLOAT and its index: the largest, or the first if equal.
struct Body {
  std::string name;
  std::vector<pe::Expr> exprs;
  float init;
};

std::vector<Body> bodies() {
  const pe::Expr later = pe::_3 > pe::_1 || (pe::_3 == pe::_1 && pe::_4 < pe::_2);
  return {{"add", {pe::_1 + pe::_2}, 0},
          {"max", {pe::Max(pe::_1, pe::_2)}, -INFINITY},
          {"argmax",
           {pe::Select(pe::_3, pe::_1, later), pe::Select(pe::_4, pe::_2, later)},
           -INFINITY}};
}

std::vector<Twin::Value> inputsOf(const Body& body, const Shape& shape) {
  std::vector<Twin::Value> in = {numbers<float>(poplar::FLOAT, shape, -999, 999)};
  if (body.exprs.size() > 1) in.push_back(numbers<int>(poplar::INT, shape, 0, 999, 2));
  in.push_back(valueOf<float>(poplar::FLOAT, {}, {body.init}));
  if (body.exprs.size() > 1) in.push_back(valueOf<int>(poplar::INT, {}, {9999}));
  return in;
}

Tensors firstOf(const Tensors& in) { return {in.begin(), in.begin() + in.size() / 2}; }
Tensors lastOf(const Tensors& in) { return {in.begin() + in.size() / 2, in.end()}; }

}  // namespace

std::vector<Twin> reductions() {
  std::vector<Twin> twins;
  const auto add = [&](const Body& body, const Shape& shape, const std::vector<std::size_t>& dims) {
    twins.push_back({"reduce by " + body.name + " of rank " + std::to_string(shape.size()),
                     inputsOf(body, shape), [=](Graph& g, const Tensors& in, Sequence& p) {
                       return popx::reduce(g, firstOf(in), lastOf(in), body.exprs, dims, p);
                     }});
  };
  auto all = bodies();
  all[0].init = 5;  // applied once
  for (const auto& body : all) {
    add(body, {37}, {0});
    add(body, {3, 0}, {1});
    add(body, {4, 5}, {});
    add(body, {3, 8, 5}, {2, 0});
    add(body, {1, 6}, {0, 1});
  }
  return twins;
}

std::vector<Twin> windows() {
  std::vector<Twin> twins;
  const auto add = [&](const std::string& name, const Body& body, const Shape& shape,
                       const popx::Window& window) {
    twins.push_back({"windows, " + name + ", by " + body.name, inputsOf(body, shape),
                     [=](Graph& g, const Tensors& in, Sequence& p) {
                       return popx::reduceWindow(g, firstOf(in), lastOf(in), body.exprs, window, p);
                     }});
  };
  auto all = bodies();
  all[0].init = 5;  // applied once, however much padding there is
  for (const auto& body : all) {
    auto pool = popx::Window::of({2, 3});
    pool.strides = {2, 1};
    add("pool", body, {5, 7}, pool);
    auto prefix = popx::Window::of({13});
    prefix.padding_low = {12};
    add("prefix", body, {13}, prefix);
    auto dilated = popx::Window::of({3, 2});
    dilated.base_dilations = {2, 1};
    dilated.window_dilations = {1, 3};
    dilated.padding_low = {1, -1};
    dilated.padding_high = {2, 0};
    add("dilated", body, {4, 9}, dilated);
    add("too large", body, {4}, popx::Window::of({5}));
  }
  return twins;
}

std::vector<Twin> scatters() {
  std::vector<Twin> twins;
  const auto add = [&](const std::string& name, const popx::ScatterDims& dims, const Shape& operand,
                       const Shape& indices, const Shape& updates, const std::string& body) {
    twins.push_back(
        {"scatter " + name + ", " + body,
         {numbers<int>(poplar::INT, operand, -99, 99), numbers<int>(poplar::INT, indices, -2, 6),
          numbers<int>(poplar::INT, updates, -99, 99, 2)},
         [=](Graph& g, const Tensors& in, Sequence& p) -> Tensors {
           const auto t =
               g.addVariable(poplar::INT, operand, poplar::VariableMappingMethod::LINEAR, "t");
           p.add(poplar::program::Copy(in[0], t));
           popx::scatter(g, {t}, in[1], {in[2]}, dims, body, p);
           return {t};
         }});
  };
  popx::ScatterDims rows;
  rows.update_window_dims = {1};
  rows.inserted_window_dims = {0};
  rows.scatter_dims_to_operand_dims = {0};
  rows.index_vector_dim = 1;
  for (const char* body : {"replace", "add", "mul", "min", "max", "and", "or"})
    add("rows", rows, {5, 4}, {7}, {7, 4}, body);
  add("no rows", rows, {5, 4}, {0}, {0, 4}, "add");
  popx::ScatterDims windows;
  windows.update_window_dims = {0, 2};
  windows.scatter_dims_to_operand_dims = {1, 0};
  windows.index_vector_dim = 0;
  add("windows", windows, {5, 6}, {2, 8}, {2, 8, 3}, "add");
  popx::ScatterDims whole;
  whole.update_window_dims = {1, 2};
  whole.index_vector_dim = 1;
  add("into the whole", whole, {3, 2}, {4, 0}, {4, 3, 2}, "add");
  popx::ScatterDims batched;
  batched.update_window_dims = {2};
  batched.inserted_window_dims = {1};
  batched.input_batching_dims = {0};
  batched.scatter_indices_batching_dims = {1};
  batched.scatter_dims_to_operand_dims = {1};
  batched.index_vector_dim = 2;
  add("a batch", batched, {3, 5, 2}, {4, 3, 1}, {4, 3, 2}, "replace");
  return twins;
}

std::vector<Twin> selections() {
  std::vector<Twin> twins;
  const auto add = [&](const std::string& name, const Shape& shape, const Shape& sources,
                       const popx::Window& window) {
    twins.push_back({"select and scatter, " + name,
                     {numbers<float>(poplar::FLOAT, shape, -5, 5),
                      numbers<float>(poplar::FLOAT, sources, -99, 99, 2),
                      valueOf<float>(poplar::FLOAT, {}, {3})},
                     [=](Graph& g, const Tensors& in, Sequence& p) -> Tensors {
                       return {popx::selectAndScatter(g, in[0], in[1], in[2], pe::_1 >= pe::_2,
                                                      pe::_1 + pe::_2, window, p)};
                     }});
  };
  auto apart = popx::Window::of({2, 3});
  apart.strides = {2, 3};
  add("apart", {5, 6}, {2, 2}, apart);
  auto over = popx::Window::of({3, 2});
  over.padding_low = {2, 1};
  over.padding_high = {1, 0};
  add("over one another", {4, 5}, {5, 5}, over);
  auto cut = popx::Window::of({2});
  cut.padding_low = {-1};
  add("cut", {5}, {3}, cut);
  return twins;
}

namespace {

/// Takes a slice, then overwrites it; returns the slice and the whole array.
template <class T>
Twin sliced(const std::string& name, Type type, const std::vector<T>& starts, const Shape& dims,
            const Shape& sizes) {
  const Shape shape = {5, 4, 300};
  Shape part = shape;
  for (std::size_t i = 0; i < dims.size(); ++i) part[dims[i]] = sizes[i];
  return {"slice " + name,
          {numbers<int>(poplar::INT, shape, -99, 99), numbers<int>(poplar::INT, part, -99, 99, 2),
           valueOf<T>(type, {starts.size()}, starts)},
          [=](Graph& g, const Tensors& in, Sequence& p) -> Tensors {
            const auto t =
                g.addVariable(poplar::INT, shape, poplar::VariableMappingMethod::LINEAR, "t");
            p.add(poplar::program::Copy(in[0], t));
            const auto slice = popx::dynamicSlice(g, t, in[2], dims, sizes, p);
            popx::dynamicUpdate(g, t, in[1], in[2], dims, sizes, p);
            return {slice, t};
          }};
}

}  // namespace

std::vector<Twin> slices() {
  std::vector<Twin> twins;
  for (const int start : {-300, -1, 0, 2, 3, 4, 5, 2000000000}) {
    const std::string at = " at " + std::to_string(start);
    twins.push_back(sliced<int>("of one row" + at, poplar::INT, {start}, {0}, {1}));
    twins.push_back(sliced<int>("of rows" + at, poplar::INT, {start}, {0}, {2}));
    twins.push_back(
        sliced<int>("of two dimensions" + at, poplar::INT, {start, 3 - start}, {2, 1}, {7, 3}));
  }
  twins.push_back(sliced<unsigned>("by UNSIGNED_INT", poplar::UNSIGNED_INT, {~0u}, {0}, {2}));
  twins.push_back(
      sliced<signed char>("by SIGNED_CHAR", poplar::SIGNED_CHAR, {-9, 127}, {0, 2}, {2, 9}));
  twins.push_back(
      sliced<unsigned char>("by UNSIGNED_CHAR", poplar::UNSIGNED_CHAR, {200}, {1}, {3}));
  twins.push_back(sliced<short>("by SHORT", poplar::SHORT, {-2}, {2}, {250}));
  twins.push_back(sliced<long long>("by LONGLONG", poplar::LONGLONG, {-5'000'000'000}, {0}, {3}));
  return twins;
}

std::vector<Twin> sorts() {
  using popx::FloatOrder;
  using popx::SortKey;
  std::vector<Twin> twins;
  const auto byKeys = [&](const std::string& name, std::vector<Twin::Value> inputs, unsigned dim,
                          const std::vector<SortKey>& keys) {
    twins.push_back(
        {"sort " + name, std::move(inputs), [=](Graph& g, const Tensors& in, Sequence& p) {
           return popx::sort(g, in, dim, keys, p);
         }});
  };
  for (const std::size_t n : {0, 1, 2, 3, 5, 8, 13, 33})
    byKeys("of " + std::to_string(n), {numbers<int>(poplar::INT, {n}, -9, 9)}, 0, {{}});
  for (const auto order : {FloatOrder::kTotal, FloatOrder::kCanonical}) {
    const std::string name = order == FloatOrder::kTotal ? " in total order" : "";
    byKeys("FLOAT" + name, {floats({19, 3}, 1)}, 0, {{0, false, order}});
    byKeys("FLOAT down" + name, {floats({2, 12}, 2)}, 1, {{0, true, order}});
    byKeys("HALF" + name, {halves({40})}, 0, {{0, false, order}});
  }
  byKeys("BOOL", {numbers<std::uint8_t>(poplar::BOOL, {17}, 0, 1)}, 0, {{0, true}});
  byKeys("UNSIGNED_CHAR", {numbers<std::uint8_t>(poplar::UNSIGNED_CHAR, {9}, 0, 255)}, 0, {{}});
  byKeys("by two keys",
         {numbers<int>(poplar::INT, {4, 20}, 0, 2), numbers<int>(poplar::INT, {4, 20}, 0, 2, 2),
          numbers<int>(poplar::INT, {4, 20}, 0, 99, 3)},
         1, {{1}, {0, true}});
  const pe::Expr comparator = pe::_1 * pe::_1 < pe::_2 * pe::_2;
  twins.push_back({"sort by squares",
                   {numbers<int>(poplar::INT, {21}, -9, 9), numbers<int>(poplar::INT, {21}, 0, 99)},
                   [=](Graph& g, const Tensors& in, Sequence& p) {
                     return popx::sort(g, in, 0, comparator, true, p);
                   }});
  return twins;
}

}  // namespace TWINS
