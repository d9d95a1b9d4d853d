#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "embedded/Batcher.hpp"
#include "embedded/Error.hpp"
#include "embedded/Session.hpp"
#include "embedded/ipujax_runtime.h"

// No exception leaves these functions.
using namespace ipujax::embedded;

struct ipujax_session {
  std::unique_ptr<Session> session;
};
struct ipujax_run {
  std::shared_ptr<Run> run;
};
struct ipujax_batcher {
  std::unique_ptr<Batcher> batcher;
};

namespace {

struct LastError {
  std::string message;
  ipujax_recovery recovery = IPUJAX_NO_RECOVERY;
};

LastError& lastError() {
  thread_local LastError last;
  return last;
}

template <class F>
ipujax_status guarded(const F& call) noexcept {
  try {
    call();
    return IPUJAX_OK;
  } catch (...) {
    const Error error = currentError();
    try {
      lastError() = {error.what(), static_cast<ipujax_recovery>(error.recovery())};
    } catch (...) {  // NOLINT(bugprone-empty-catch): no memory for the text; the status says enough
    }
    return static_cast<ipujax_status>(error.status());
  }
}

template <class T>
void require(const T* pointer, const char* what) {
  if (!pointer)
    throw Error(Status::kInvalidArgument,
                std::string("[runtime] needs ") + what + "; got a null pointer. Pass its address.");
}

Arrays arraysOf(const void* const* inputs, size_t num_inputs, void* const* outputs,
                size_t num_outputs) {
  if (num_inputs > 0) require(inputs, "inputs");
  if (num_outputs > 0) require(outputs, "outputs");
  // Not in braces: pointers convert to `const void*`, and two would be a list of two elements.
  return {std::vector<const void*>(inputs, inputs + num_inputs),
          std::vector<void*>(outputs, outputs + num_outputs)};
}

/// Times that do not fit mean for ever.
Timeout timeoutOf(uint64_t us) {
  constexpr uint64_t kMost = uint64_t{1} << 62;
  return Timeout{static_cast<std::int64_t>(std::min(us, kMost))};
}

ipujax_tensor tensorOf(const std::vector<Tensor>& tensors, size_t index) {
  if (index >= tensors.size()) return {};
  const Tensor& tensor = tensors[index];
  return {tensor.name.c_str(), tensor.dtype.c_str(), tensor.shape.data(), tensor.shape.size(),
          tensor.bytes};
}

}  // namespace

extern "C" {

const char* ipujax_version(void) { return IPUJAX_VERSION; }
const char* ipujax_last_message(void) { return lastError().message.c_str(); }
ipujax_recovery ipujax_last_recovery(void) { return lastError().recovery; }

ipujax_status ipujax_open(const char* path, const ipujax_options* options,
                          ipujax_session** session) {
  return guarded([&] {
    require(session, "a place for the session");
    *session = nullptr;
    require(path, "a path");
    Session::Options wanted;
    if (options) wanted.timeout = timeoutOf(options->timeout_us);
    if (options && options->queue_depth > 0) wanted.queue_depth = options->queue_depth;
    *session = new ipujax_session{Session::open(path, wanted)};  // NOLINT: the caller's
  });
}

void ipujax_close(ipujax_session* session) { const std::unique_ptr<ipujax_session> owned(session); }

const char* ipujax_name(const ipujax_session* s) {
  return s->session->package().description().name.c_str();
}
size_t ipujax_num_inputs(const ipujax_session* s) { return s->session->inputs().size(); }
size_t ipujax_num_outputs(const ipujax_session* s) { return s->session->outputs().size(); }
size_t ipujax_num_stored(const ipujax_session* s) { return s->session->stored().size(); }
ipujax_tensor ipujax_input(const ipujax_session* s, size_t index) {
  return tensorOf(s->session->inputs(), index);
}
ipujax_tensor ipujax_output(const ipujax_session* s, size_t index) {
  return tensorOf(s->session->outputs(), index);
}
ipujax_tensor ipujax_stored(const ipujax_session* s, size_t index) {
  return tensorOf(s->session->stored(), index);
}

ipujax_status ipujax_run_now(ipujax_session* session, const void* const* inputs, size_t num_inputs,
                             void* const* outputs, size_t num_outputs, uint64_t timeout_us) {
  return guarded([&] {
    require(session, "a session");
    session->session->run(arraysOf(inputs, num_inputs, outputs, num_outputs),
                          timeoutOf(timeout_us));
  });
}

ipujax_status ipujax_submit(ipujax_session* session, const void* const* inputs, size_t num_inputs,
                            void* const* outputs, size_t num_outputs, uint64_t timeout_us,
                            ipujax_run** run) {
  return guarded([&] {
    require(session, "a session");
    require(run, "a place for the run");
    *run = nullptr;
    auto made = std::make_unique<ipujax_run>();
    made->run = session->session->submit(arraysOf(inputs, num_inputs, outputs, num_outputs),
                                         timeoutOf(timeout_us));
    *run = made.release();
  });
}

ipujax_status ipujax_wait(ipujax_run* run, uint64_t timeout_us) {
  return guarded([&] {
    require(run, "a run");
    run->run->wait(timeoutOf(timeout_us));
  });
}

int ipujax_is_done(const ipujax_run* run) { return run && run->run->isDone() ? 1 : 0; }

void ipujax_free_run(ipujax_run* run) { const std::unique_ptr<ipujax_run> owned(run); }

ipujax_status ipujax_reset_seed(ipujax_session* session, uint64_t seed, int identical_replicas) {
  return guarded([&] {
    require(session, "a session");
    session->session->resetSeed(seed, identical_replicas != 0);
  });
}

ipujax_status ipujax_read_stored(ipujax_session* session, const char* name, void* elements,
                                 size_t bytes) {
  return guarded([&] {
    require(session, "a session");
    require(name, "a name");
    if (bytes > 0) require(elements, "room for the elements");
    session->session->readStored(name, {static_cast<std::byte*>(elements), bytes});
  });
}

ipujax_status ipujax_set_stored(ipujax_session* session, const char* const* names,
                                const void* const* elements, const size_t* bytes, size_t count) {
  return guarded([&] {
    require(session, "a session");
    std::vector<Session::NewValue> values;
    for (size_t i = 0; i < count; ++i) {
      require(names, "names");
      require(elements, "elements");
      require(bytes, "sizes");
      require(names[i], "a name");
      if (bytes[i] > 0) require(elements[i], "the elements");
      values.push_back({names[i], {static_cast<const std::byte*>(elements[i]), bytes[i]}});
    }
    session->session->setStored(values);
  });
}

ipujax_status ipujax_make_batcher(ipujax_session* session, uint64_t delay_us,
                                  ipujax_batcher** batcher) {
  return guarded([&] {
    require(session, "a session");
    require(batcher, "a place for the batcher");
    *batcher = nullptr;
    auto made = std::make_unique<ipujax_batcher>();
    made->batcher = std::make_unique<Batcher>(*session->session, timeoutOf(delay_us));
    *batcher = made.release();
  });
}

size_t ipujax_batch_size(const ipujax_batcher* batcher) { return batcher->batcher->batchSize(); }

ipujax_status ipujax_run_samples(ipujax_batcher* batcher, const void* const* inputs,
                                 size_t num_inputs, void* const* outputs, size_t num_outputs,
                                 size_t samples, uint64_t timeout_us) {
  return guarded([&] {
    require(batcher, "a batcher");
    batcher->batcher->run(arraysOf(inputs, num_inputs, outputs, num_outputs), samples,
                          timeoutOf(timeout_us));
  });
}

ipujax_status ipujax_submit_samples(ipujax_batcher* batcher, const void* const* inputs,
                                    size_t num_inputs, void* const* outputs, size_t num_outputs,
                                    size_t samples, uint64_t timeout_us, ipujax_run** run) {
  return guarded([&] {
    require(batcher, "a batcher");
    require(run, "a place for the run");
    *run = nullptr;
    auto made = std::make_unique<ipujax_run>();
    made->run = batcher->batcher->submit(arraysOf(inputs, num_inputs, outputs, num_outputs),
                                         samples, timeoutOf(timeout_us));
    *run = made.release();
  });
}

void ipujax_free_batcher(ipujax_batcher* batcher) {
  const std::unique_ptr<ipujax_batcher> owned(batcher);
}

}  // extern "C"
