#ifndef IPUJAX_RUNTIME_H
#define IPUJAX_RUNTIME_H
/* Runs programs that ipujax.precompile saved, without Python: docs/guides/deploying.md.
 *
 * Functions that return a status return IPUJAX_OK or why they failed; ipujax_last_message has the
 * message for the calling thread. Any thread may call them, but must not free what another thread
 * still uses. Arrays are row-major; they are used in place if they begin at a multiple of 64 bytes,
 * else copied. Sizes are in bytes, times in microseconds. */
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum ipujax_status {
  IPUJAX_OK = 0,
  IPUJAX_INVALID_ARGUMENT = 1,
  IPUJAX_BAD_FILE = 2,      /* not readable, damaged, or of another version */
  IPUJAX_NOT_SUPPORTED = 3, /* callbacks into Python */
  IPUJAX_TIMEOUT = 4,
  IPUJAX_CLOSED = 5,
  IPUJAX_RECOVERABLE = 6, /* a device failed: ipujax_last_recovery says how to recover it */
  IPUJAX_UNRECOVERABLE = 7,
  IPUJAX_OUT_OF_MEMORY = 8,
  IPUJAX_FAILED = 9
} ipujax_status;

typedef enum ipujax_recovery {
  IPUJAX_IPU_RESET = 0,
  IPUJAX_PARTITION_RESET = 1,
  IPUJAX_FULL_RESET = 2,
  IPUJAX_NO_RECOVERY = 3
} ipujax_recovery;

/* A program on devices of its own; one run executes at a time. Arrays are whole, whatever parts of
 * them each device has. */
typedef struct ipujax_session ipujax_session;
/* A submitted run. */
typedef struct ipujax_run ipujax_run;
/* Collects requests into batches. */
typedef struct ipujax_batcher ipujax_batcher;

/* An array that callers pass or get. Valid as long as the session. */
typedef struct ipujax_tensor {
  const char* name;  /* "params['w']" */
  const char* dtype; /* "float32", "bfloat16", "int32", "bool" ... */
  const int64_t* shape;
  size_t rank;
  size_t bytes; /* 0 for an input that the program does not use */
} ipujax_tensor;

/* Zeros are the defaults. */
typedef struct ipujax_options {
  uint64_t timeout_us; /* of each run; 0: none */
  size_t queue_depth;  /* submitted runs that may wait; 0: 64 */
} ipujax_options;

const char* ipujax_version(void);
/* The message of the calling thread's last failed call; valid until the next one. */
const char* ipujax_last_message(void);
ipujax_recovery ipujax_last_recovery(void);

/* `options` may be null. */
ipujax_status ipujax_open(const char* path, const ipujax_options* options,
                          ipujax_session** session);
/* Cancels the run in progress, fails waiting runs with IPUJAX_CLOSED, waits for their threads to
 * leave, and frees the session. Free its batchers first. Null is ignored. */
void ipujax_close(ipujax_session* session);

const char* ipujax_name(const ipujax_session* session);
size_t ipujax_num_inputs(const ipujax_session* session);
size_t ipujax_num_outputs(const ipujax_session* session);
size_t ipujax_num_stored(const ipujax_session* session); /* arguments that the file holds */
ipujax_tensor ipujax_input(const ipujax_session* session, size_t index);
ipujax_tensor ipujax_output(const ipujax_session* session, size_t index);
ipujax_tensor ipujax_stored(const ipujax_session* session, size_t index);

/* One array for each input and output; null for an output that is not wanted. A time-out of 0 means
 * the session's. A run that takes longer is cancelled at its next step. */
ipujax_status ipujax_run_now(ipujax_session* session, const void* const* inputs, size_t num_inputs,
                             void* const* outputs, size_t num_outputs, uint64_t timeout_us);
/* The same on the session's own thread, in order; the arrays must live until the run is done. */
ipujax_status ipujax_submit(ipujax_session* session, const void* const* inputs, size_t num_inputs,
                            void* const* outputs, size_t num_outputs, uint64_t timeout_us,
                            ipujax_run** run);
/* The run's own status, or IPUJAX_TIMEOUT if it has not ended by then; 0 waits for ever. */
ipujax_status ipujax_wait(ipujax_run* run, uint64_t timeout_us);
int ipujax_is_done(const ipujax_run* run);
/* The run itself continues. */
void ipujax_free_run(ipujax_run* run);

/* Sets the seed of the random bits of stochastic rounding, for runs that begin from now on; 0 at
 * first. The n-th run after a call draws the same bits as after any other call with this seed.
 * Replicas draw bits of their own, unless `identical_replicas` is not 0. */
ipujax_status ipujax_reset_seed(ipujax_session* session, uint64_t seed, int identical_replicas);

/* Copies a stored argument to `elements`. */
ipujax_status ipujax_read_stored(ipujax_session* session, const char* name, void* elements,
                                 size_t bytes);
/* Replaces several stored arguments from the next run on: no run sees only some of them. */
ipujax_status ipujax_set_stored(ipujax_session* session, const char* const* names,
                                const void* const* elements, const size_t* bytes, size_t count);

/* All inputs and outputs have samples along their first axis. A batch runs when it is full, or
 * `delay_us` after its first request. */
ipujax_status ipujax_make_batcher(ipujax_session* session, uint64_t delay_us,
                                  ipujax_batcher** batcher);
size_t ipujax_batch_size(const ipujax_batcher* batcher);
/* Runs arrays of `samples` samples each; returns when the results are there. */
ipujax_status ipujax_run_samples(ipujax_batcher* batcher, const void* const* inputs,
                                 size_t num_inputs, void* const* outputs, size_t num_outputs,
                                 size_t samples, uint64_t timeout_us);
/* The same without waiting for the results; the arrays must live until the run is done. Waits only
 * while as many batches of requests wait as the session may queue runs. */
ipujax_status ipujax_submit_samples(ipujax_batcher* batcher, const void* const* inputs,
                                    size_t num_inputs, void* const* outputs, size_t num_outputs,
                                    size_t samples, uint64_t timeout_us, ipujax_run** run);
void ipujax_free_batcher(ipujax_batcher* batcher);

#ifdef __cplusplus
}
#endif
#endif
