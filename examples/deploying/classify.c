/* Runs classifier.ipu on points.bin in batches and compares with labels.bin; save.py writes all.
 *
 *   cc classify.c -I<prefix>/include -L<prefix>/lib -lipujax_runtime -Wl,-rpath,<prefix>/lib
 *   ./a.out <folder>
 */
#include <ipujax_runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kPoints = 1000, kBatch = 100 };

static void check(ipujax_status status, const char *what) {
  if (status == IPUJAX_OK) return;
  fprintf(stderr, "%s: status %d: %s\n", what, (int)status, ipujax_last_message());
  exit(1);
}

static void read_file(const char *folder, const char *name, void *to, size_t bytes) {
  char path[4096];
  FILE *file;
  snprintf(path, sizeof(path), "%s/%s", folder, name);
  file = fopen(path, "rb");
  if (!file || fread(to, 1, bytes, file) != bytes) {
    fprintf(stderr, "cannot read %s\n", path);
    exit(1);
  }
  fclose(file);
}

static void describe(const ipujax_session *session) {
  size_t i, d;
  printf("%s\n", ipujax_name(session));
  for (i = 0; i < ipujax_num_inputs(session) + ipujax_num_outputs(session); ++i) {
    const int is_input = i < ipujax_num_inputs(session);
    const ipujax_tensor t = is_input ? ipujax_input(session, i)
                                     : ipujax_output(session, i - ipujax_num_inputs(session));
    printf("  %s %s: %s[", is_input ? "takes" : "gives", t.name, t.dtype);
    for (d = 0; d < t.rank; ++d) printf("%s%lld", d ? ", " : "", (long long)t.shape[d]);
    printf("], %lu bytes\n", (unsigned long)t.bytes);
  }
}

static float points[kPoints][2];
static int labels[kPoints];
static int found[kPoints];

int main(int argc, char **argv) {
  const char *folder = argc > 1 ? argv[1] : ".";
  char path[4096];
  ipujax_options options = {0};
  ipujax_session *session = NULL;
  ipujax_batcher *batcher = NULL;
  ipujax_run *runs[kPoints / kBatch];
  const void *input;
  void *output;
  int i, right = 0;

  read_file(folder, "points.bin", points, sizeof(points));
  read_file(folder, "labels.bin", labels, sizeof(labels));
  snprintf(path, sizeof(path), "%s/classifier.ipu", folder);
  options.timeout_us = 10 * 1000 * 1000;
  check(ipujax_open(path, &options, &session), "open");
  describe(session);

  /* All batches at once, on the session's own thread. */
  for (i = 0; i < kPoints / kBatch; ++i) {
    input = points[i * kBatch];
    output = &found[i * kBatch];
    check(ipujax_submit(session, &input, 1, &output, 1, 0, &runs[i]), "submit");
  }
  for (i = 0; i < kPoints / kBatch; ++i) {
    check(ipujax_wait(runs[i], 0), "wait");
    ipujax_free_run(runs[i]);
  }
  for (i = 0; i < kPoints; ++i) right += found[i] == labels[i];

  /* One point, as a request of a server would be. */
  check(ipujax_make_batcher(session, 500, &batcher), "batcher");
  input = points[7];
  output = &found[0];
  check(ipujax_run_samples(batcher, &input, 1, &output, 1, 1, 0), "request");
  ipujax_free_batcher(batcher);
  if (found[0] != found[7]) {
    fprintf(stderr, "one point is on spiral %d alone and %d in its batch\n", found[0], found[7]);
    return 1;
  }
  ipujax_close(session);
  printf("test accuracy in C: %.3f\n", (double)right / kPoints);
  return right > kPoints * 95 / 100 ? 0 : 1;
}
