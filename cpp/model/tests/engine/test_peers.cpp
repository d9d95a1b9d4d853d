// Programs whose replicas run in several processes give the bits of one process. The processes are
// threads here, with a session each.
#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <numeric>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "Check.hpp"
#include "engine/kernels/collectives/CollectiveGroups.hpp"
#include "engine/kernels/collectives/CollectiveOperator.hpp"
#include "engine/run/Session.hpp"

namespace engine = ipujax::engine;
namespace runtime = ipujax::runtime;
namespace collective = ipujax::engine::collective;

namespace {

using collective::CollectiveOperator;
using engine::ElementType;
using Bytes = std::vector<std::byte>;
using Random = std::minstd_rand;

/// Messages between threads that play processes.
class Network {
 public:
  struct Message {
    std::uint64_t place;
    Bytes bytes;
  };
  void send(std::uint32_t from, std::uint32_t to, Message message) {
    const std::lock_guard lock(mutex_);
    queues_[from * 64 + to].push_back(std::move(message));
    changed_.notify_all();
  }
  Message receive(std::uint32_t from, std::uint32_t to) {
    std::unique_lock lock(mutex_);
    auto& queue = queues_[from * 64 + to];
    changed_.wait(lock, [&] { return !queue.empty() || !reason_.empty(); });
    if (queue.empty()) throw std::runtime_error("another process failed: " + reason_);
    Message message = std::move(queue.front());
    queue.pop_front();
    return message;
  }
  void fail(const std::string& reason) {
    const std::lock_guard lock(mutex_);
    reason_ = reason;
    changed_.notify_all();
  }
  std::size_t sent_bytes = 0;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::deque<Message>> queues_ = std::vector<std::deque<Message>>(64 * 64);
  std::string reason_;
};

class Threads final : public runtime::Peers {
 public:
  Threads(Network& network, std::vector<std::uint32_t> processes, std::uint32_t self)
      : Peers(std::move(processes), self), network_(network) {}
  void begin() override {}
  void exchange(const runtime::MeetingPlace& place, std::span<const runtime::Outgoing> sends,
                std::span<const runtime::Incoming> receives) override {
    for (const auto& send : sends)
      network_.send(self(), send.process, {place.number, {send.bytes.begin(), send.bytes.end()}});
    for (const auto& receive : receives) {
      const auto message = network_.receive(receive.process, self());
      if (message.place != place.number || message.bytes.size() != receive.bytes.size())
        throw std::runtime_error("a message of another place or size");
      std::memcpy(receive.bytes.data(), message.bytes.data(), message.bytes.size());
    }
  }
  void fail(const std::string& reason) noexcept override { network_.fail(reason); }
  void cancel() noexcept override {}
  void forgetCancel() noexcept override {}

 private:
  Network& network_;
};

/// A program of one step from one input to one output, each dense.
struct Program {
  std::uint32_t num_replicas;
  engine::StepDesc step;
  std::size_t in_bytes = 0;
  std::size_t out_bytes = 0;

  std::shared_ptr<const engine::Image> image() const {
    engine::Image image;
    image.signature.name = "f";
    image.signature.num_replicas = num_replicas;
    image.signature.inputs.push_back({"uint8", {}, in_bytes, {}});
    image.signature.outputs.push_back({"uint8", {}, out_bytes, {}});
    image.signature.output_alias = {-1};
    image.buffers = {{engine::BufferKind::kInput, in_bytes, 0, 0, 0},
                     {engine::BufferKind::kOutput, out_bytes, 0, 0, 0}};
    image.debug.push_back({"step", "train.py:31"});
    image.nodes.resize(2);
    image.nodes[0].children = {1};
    image.nodes[1].kind = engine::NodeKind::kStep;
    image.steps.push_back(step);
    const std::string sealed = image.serialise();  // so that the checks of a loaded image apply
    return engine::Image::deserialise(std::as_bytes(std::span(sealed)));
  }
};

/// Runs the replicas of one process; `peers` is null for all.
std::vector<Bytes> runHere(const Program& program, const std::vector<Bytes>& inputs,
                           std::shared_ptr<runtime::Peers> peers) {
  std::vector<std::shared_ptr<engine::DeviceMemory>> memories;
  std::vector<Bytes> outputs(inputs.size(), Bytes(program.out_bytes, std::byte{0x5a}));
  std::vector<const void*> in;
  std::vector<void*> out;
  for (std::size_t r = 0; r < inputs.size(); ++r) {
    memories.push_back(std::make_shared<engine::DeviceMemory>());
    in.push_back(inputs[r].data());
    out.push_back(outputs[r].data());
  }
  std::vector<engine::Arrays> arrays;
  for (std::size_t r = 0; r < inputs.size(); ++r) arrays.push_back({{&in[r], 1}, {&out[r], 1}});
  engine::Session session(program.image(), std::move(memories), std::move(peers));
  session.run(arrays);
  session.run(arrays);
  return outputs;
}

/// Runs replica r in process processes[r]; the results of all of them.
std::vector<Bytes> runAmong(const Program& program, const std::vector<Bytes>& inputs,
                            const std::vector<std::uint32_t>& processes) {
  Network network;
  std::vector<Bytes> results(inputs.size());
  std::vector<std::thread> threads;
  std::exception_ptr error;
  std::mutex mutex;
  for (std::uint32_t p = 0; p <= std::ranges::max(processes); ++p) {
    threads.emplace_back([&, p] {
      std::vector<Bytes> own;
      for (std::size_t r = 0; r < inputs.size(); ++r)
        if (processes[r] == p) own.push_back(inputs[r]);
      try {
        auto made = runHere(program, own, std::make_shared<Threads>(network, processes, p));
        std::size_t next = 0;
        for (std::size_t r = 0; r < inputs.size(); ++r)
          if (processes[r] == p) results[r] = std::move(made[next++]);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!error) error = std::current_exception();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  if (error) std::rethrow_exception(error);
  return results;
}

std::size_t below(Random& random, std::size_t n) { return random() % n; }

/// Each of the processes has at least one replica.
std::vector<std::uint32_t> drawProcesses(Random& random, std::uint32_t replicas) {
  const auto count = static_cast<std::uint32_t>(1 + below(random, std::min(replicas, 5U)));
  std::vector<std::uint32_t> processes(replicas);
  for (std::uint32_t r = 0; r < replicas; ++r)
    processes[r] = r < count ? r : static_cast<std::uint32_t>(below(random, count));
  if (below(random, 2) == 0) std::ranges::sort(processes);
  if (below(random, 2) == 0) std::ranges::shuffle(processes, random);
  return processes;
}

/// Some or all of the replicas, in groups of any order; of one size where `alike`.
collective::Groups drawGroups(Random& random, std::uint32_t replicas, bool alike) {
  std::vector<unsigned> order(replicas);
  std::iota(order.begin(), order.end(), 0U);
  if (below(random, 2) == 0) std::ranges::shuffle(order, random);
  collective::Groups groups;
  const std::size_t size = 1 + below(random, replicas);
  for (std::size_t at = 0; at + size <= order.size(); at += size)
    groups.emplace_back(order.begin() + static_cast<std::ptrdiff_t>(at),
                        order.begin() + static_cast<std::ptrdiff_t>(at + size));
  if (!alike && groups.size() > 1) groups.pop_back();
  return groups;
}

engine::OperandDesc dense(std::uint32_t buffer, ElementType type, engine::Access access,
                          const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> strides(shape.size(), 1);
  for (std::size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * shape[d];
  return {buffer, type, access, 0, shape, strides};
}

std::size_t bytesOf(const engine::OperandDesc& operand) {
  return static_cast<std::size_t>(operand.numElements()) * engine::sizeOf(operand.type);
}

void setOperands(Program& program, ElementType type, const std::vector<std::int64_t>& in,
                 const std::vector<std::int64_t>& out) {
  program.step.operands = {dense(0, type, engine::Access::kRead, in),
                           dense(1, type, engine::Access::kWrite, out)};
  program.in_bytes = bytesOf(program.step.operands[0]);
  program.out_bytes = bytesOf(program.step.operands[1]);
}

Program drawReduction(Random& random) {
  const auto replicas = static_cast<std::uint32_t>(1 + below(random, 20));
  const std::vector<ElementType> types{ElementType::kFloat, ElementType::kHalf, ElementType::kInt32,
                                       ElementType::kBool};
  const ElementType type = types[below(random, types.size())];
  std::vector<CollectiveOperator> ops{CollectiveOperator::ADD,        CollectiveOperator::MUL,
                                      CollectiveOperator::MIN,        CollectiveOperator::MAX,
                                      CollectiveOperator::SQUARE_ADD, CollectiveOperator::LOCAL};
  if (type == ElementType::kFloat || type == ElementType::kHalf)
    ops.push_back(CollectiveOperator::MEAN);
  if (type == ElementType::kBool)
    ops = {CollectiveOperator::LOGICAL_AND, CollectiveOperator::LOGICAL_OR};
  const auto op = ops[below(random, ops.size())];
  const bool scatters = op == CollectiveOperator::LOCAL || below(random, 2) == 0;
  const auto groups = drawGroups(random, replicas, false);
  const auto n = static_cast<std::int64_t>(below(random, 3) == 0 ? 1 + below(random, 60)
                                                                 : below(random, 30'000));
  const auto size = static_cast<std::int64_t>(groups.front().size());
  Program program{replicas, {}};
  program.step.kernel = "gcl.reduce";
  setOperands(program, type, {n}, {scatters ? (n + size - 1) / size : n});
  program.step.attributes.set("op", static_cast<std::int64_t>(op));
  program.step.attributes.set("scatter", std::int64_t{scatters ? 1 : 0});
  collective::setGroups(program.step.attributes, groups);
  return program;
}

Program drawMove(Random& random) {
  const auto replicas = static_cast<std::uint32_t>(1 + below(random, 12));
  const std::string pattern =
      std::vector<std::string>{"gather", "all_to_all", "permute"}[below(random, 3)];
  auto groups = drawGroups(random, replicas, true);
  std::vector<std::int64_t> in{static_cast<std::int64_t>(1 + below(random, 9)),
                               static_cast<std::int64_t>(1 + below(random, 900))};
  std::vector<std::int64_t> out = in;
  const auto size = static_cast<std::int64_t>(groups.front().size());
  if (pattern == "permute") {
    std::vector<unsigned> to(replicas);
    std::iota(to.begin(), to.end(), 0U);
    std::ranges::shuffle(to, random);
    groups.clear();
    for (unsigned r = 0; r < replicas; ++r)
      if (below(random, 4) > 0) groups.push_back({r, to[r]});
  } else if (pattern == "all_to_all") {
    in.insert(in.begin(), size);
    out = in;
  } else {
    out.insert(out.begin(), size);
  }
  Program program{replicas, {}};
  program.step.kernel = "gcl.move";
  setOperands(program, ElementType::kFloat, in, out);
  if (below(random, 2) == 0) {  // a transposed input
    auto& operand = program.step.operands[0];
    const std::size_t d = operand.shape.size() - 2;
    operand.strides[d] = 1;
    operand.strides[d + 1] = operand.shape[d];
  }
  program.step.attributes.set("pattern", pattern);
  collective::setGroups(program.step.attributes, groups);
  return program;
}

/// Numbers of which sums depend on the order of addition, or any bits of integers.
std::vector<Bytes> drawInputs(Random& random, const Program& program) {
  const auto& operand = program.step.operands[0];
  const auto n = static_cast<std::size_t>(operand.numElements());
  std::vector<Bytes> inputs;
  for (std::uint32_t r = 0; r < program.num_replicas; ++r) {
    Bytes& bytes = inputs.emplace_back(program.in_bytes);
    for (std::size_t i = 0; i < n; ++i) {
      const auto word = static_cast<std::uint32_t>(random() * 2654435761U);
      const float number = static_cast<float>(static_cast<std::int32_t>(word)) * 0x1p-28F;
      if (operand.type == ElementType::kFloat) std::memcpy(&bytes[4 * i], &number, 4);
      if (operand.type == ElementType::kInt32) std::memcpy(&bytes[4 * i], &word, 4);
      // A half from 1 to 4, of either sign.
      const auto half = static_cast<std::uint16_t>(0x3c00U + (word & 0x87ffU));
      if (operand.type == ElementType::kHalf) std::memcpy(&bytes[2 * i], &half, 2);
      if (operand.type == ElementType::kBool) bytes[i] = std::byte(word % 8 == 0 ? 1 : 0);
    }
  }
  return inputs;
}

void compare(const Program& program, unsigned seed, Random& random) {
  const auto inputs = drawInputs(random, program);
  const auto expected = runHere(program, inputs, nullptr);
  const auto processes = drawProcesses(random, program.num_replicas);
  const auto got = runAmong(program, inputs, processes);
  for (std::size_t r = 0; r < got.size(); ++r) {
    if (got[r] == expected[r]) continue;
    std::ostringstream text;
    text << program.step.kernel << " of seed " << seed << " differs on replica " << r;
    throw check::Failure(text.str());
  }
}

}  // namespace

TEST(reductions_among_processes_have_the_bits_of_one_process) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    Random random(seed + 1);
    compare(drawReduction(random), seed, random);
  }
}

TEST(moves_among_processes_have_the_bits_of_one_process) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    Random random(seed + 1);
    compare(drawMove(random), seed, random);
  }
}

TEST(sums_are_balanced_trees_over_the_members) {
  Program program{6, {}};
  program.step.kernel = "gcl.reduce";
  setOperands(program, ElementType::kFloat, {1}, {1});
  program.step.attributes.set("op", static_cast<std::int64_t>(CollectiveOperator::ADD));
  program.step.attributes.set("scatter", std::int64_t{0});
  collective::setGroups(program.step.attributes, {{5, 4, 3, 2, 1, 0}});
  const std::vector<float> x{0.1F, 0.23F, 1e8F, -1e8F, 0.7F, 3.3F};
  std::vector<Bytes> inputs(6, Bytes(4));
  for (std::size_t r = 0; r < 6; ++r) std::memcpy(inputs[r].data(), &x[r], 4);
  const float expected = ((x[5] + x[4]) + (x[3] + x[2])) + (x[1] + x[0]);
  for (const Bytes& bytes : runHere(program, inputs, nullptr)) {
    float got = 0;
    std::memcpy(&got, bytes.data(), 4);
    CHECK_EQ(got, expected);
  }
}

TEST(processes_of_replicas_must_be_those_of_the_program) {
  Random random(1);
  const Program program = drawMove(random);
  Network network;
  const auto peers = std::make_shared<Threads>(
      network, std::vector<std::uint32_t>(program.num_replicas + 1, 0), 0);
  CHECK_THROWS(runHere(program, {}, peers), "needs the processes of");
}
