#include "bindings/ProgramArrays.hpp"
#include "bindings/bindings.hpp"
#include "bindings/embedded.hpp"
#include "embedded/Batcher.hpp"
#include "embedded/Session.hpp"

namespace embedded = ipujax::embedded;
using Release = py::call_guard<py::gil_scoped_release>;
using embedded::Timeout;
using Values = ProgramArrays::Values;
using Arrays = ProgramArrays::Arrays;

namespace {

/// A submitted run, its results, and the object that keeps its arrays until it is done.
struct Run {
  std::shared_ptr<embedded::Run> run;
  Arrays outputs;
  std::shared_ptr<ArraysInUse> in_use;

  void wait(std::int64_t us) const {
    {
      const py::gil_scoped_release release;
      run->wait(Timeout{us});
    }
    in_use->release();
  }
};

/// A runner of programs and the arrays of its runs, which outlive the threads that use them.
template <class Runner>
struct Owner {
  std::shared_ptr<ArraysInUse> in_use = std::make_shared<ArraysInUse>();
  std::unique_ptr<Runner> runner;

  template <class Submit>
  Run submit(Arrays inputs, Arrays outputs, const Submit& submit) {
    in_use->release();
    auto pointers = ProgramArrays::pointersTo(inputs, outputs);
    const auto run = [&] {
      const py::gil_scoped_release release;
      return submit(std::move(pointers));
    }();
    in_use->keep(run, std::move(inputs), outputs);
    return {run, std::move(outputs), in_use};
  }
};

using Session = Owner<embedded::Session>;
using Batcher = Owner<embedded::Batcher>;

void bindArrays(py::module_& m) {
  py::class_<ProgramArrays>(m, "ProgramArrays")
      .def(py::init<std::vector<ProgramArrays::Type>, std::vector<ProgramArrays::Type>,
                    py::object>(),
           "inputs"_a, "outputs"_a, "convert"_a);
  py::class_<Run>(m, "Run")
      .def("is_done", [](const Run& run) { return run.run->isDone(); })
      .def("wait", &Run::wait, "timeout_us"_a)
      .def_readonly("outputs", &Run::outputs);
}

void resetSeed(Session& s, std::uint64_t seed, bool identical_replicas) {
  s.runner->resetSeed(seed, identical_replicas);
}

void bindSession(py::module_& m) {
  py::class_<Session>(m, "Session")
      .def(py::init([](const std::string& path, std::int64_t us, std::size_t depth) {
             auto session = std::make_unique<Session>();
             const py::gil_scoped_release release;
             session->runner = embedded::Session::open(path, {Timeout{us}, depth});
             return session;
           }),
           "path"_a, "timeout_us"_a, "queue_depth"_a)
      .def("describe", [](const Session& s) { return describe(s.runner->package()); })
      .def(
          "run",
          [](Session& s, const ProgramArrays& arrays, const Values& values, std::int64_t us) {
            const auto inputs = arrays.inputs(values);
            auto outputs = arrays.outputs();
            const auto pointers = ProgramArrays::pointersTo(inputs, outputs);
            {
              const py::gil_scoped_release release;
              s.runner->run(pointers, Timeout{us});
            }
            return outputs;
          },
          "arrays"_a, "values"_a, "timeout_us"_a)
      .def(
          "submit",
          [](Session& s, const ProgramArrays& arrays, const Values& values, std::int64_t us) {
            return s.submit(arrays.inputs(values), arrays.outputs(), [&](embedded::Arrays a) {
              return s.runner->submit(std::move(a), Timeout{us});
            });
          },
          "arrays"_a, "values"_a, "timeout_us"_a)
      .def("reset_seed", &resetSeed, "seed"_a, "identical_replicas"_a, Release())
      .def(
          "set_stored",
          [](Session& s, const std::vector<std::pair<std::string, py::array>>& values) {
            std::vector<embedded::Session::NewValue> made;
            for (const auto& [name, array] : values)
              made.push_back({name,
                              {static_cast<const std::byte*>(array.data()),
                               static_cast<std::size_t>(array.nbytes())}});
            const py::gil_scoped_release release;
            s.runner->setStored(made);
          },
          "values"_a)
      .def(
          "read_stored",
          [](const Session& s, const std::string& name, py::array to) {
            const std::span<std::byte> bytes(static_cast<std::byte*>(to.mutable_data()),
                                             static_cast<std::size_t>(to.nbytes()));
            const py::gil_scoped_release release;
            s.runner->readStored(name, bytes);
          },
          "name"_a, "to"_a)
      .def(
          "close", [](Session& s) { s.runner->close(); }, Release());
}

void bindBatcher(py::module_& m) {
  py::class_<Batcher>(m, "Batcher")
      .def(py::init([](Session& session, std::int64_t us) {
             auto batcher = std::make_unique<Batcher>();
             batcher->runner = std::make_unique<embedded::Batcher>(*session.runner, Timeout{us});
             return batcher;
           }),
           "session"_a, "delay_us"_a, py::keep_alive<1, 2>())
      .def_property_readonly("batch_size", [](const Batcher& b) { return b.runner->batchSize(); })
      .def(
          "run",
          [](Batcher& b, const ProgramArrays& arrays, const Values& values, std::int64_t us) {
            const std::size_t samples = ProgramArrays::samplesOf(values);
            const auto inputs = arrays.inputs(values, static_cast<py::ssize_t>(samples));
            auto outputs = arrays.outputs(static_cast<py::ssize_t>(samples));
            auto pointers = ProgramArrays::pointersTo(inputs, outputs);
            {
              const py::gil_scoped_release release;
              b.runner->run(std::move(pointers), samples, Timeout{us});
            }
            return outputs;
          },
          "arrays"_a, "values"_a, "timeout_us"_a)
      .def(
          "submit",
          [](Batcher& b, const ProgramArrays& arrays, const Values& values, std::int64_t us) {
            const std::size_t samples = ProgramArrays::samplesOf(values);
            const auto rows = static_cast<py::ssize_t>(samples);
            return b.submit(arrays.inputs(values, rows), arrays.outputs(rows),
                            [&](embedded::Arrays a) {
                              return b.runner->submit(std::move(a), samples, Timeout{us});
                            });
          },
          "arrays"_a, "values"_a, "timeout_us"_a)
      .def(
          "close", [](Batcher& b) { b.runner->close(); }, Release());
}

}  // namespace

void bindSessions(py::module_& m) {
  bindArrays(m);
  bindSession(m);
  bindBatcher(m);
}
