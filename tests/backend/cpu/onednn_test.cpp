#include "purine/backend/cpu/onednn.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <thread>
#include <vector>

#include "purine/backend/cpu/worker_thread.h"
#include "purine/core/error.h"
#include "tests/support/array.h"
#include "tests/support/error_text.h"

namespace purine::cpu::onednn {
namespace {

TEST(WorkerThreadTest, OnlyThePreparedThreadRunsAlone) {
  omp_set_num_threads(3);
  int prepared = 0;
  std::thread([&] {
    prepare_worker_thread();
    prepared = omp_get_max_threads();
  }).join();
  EXPECT_EQ(prepared, 1);
  EXPECT_EQ(omp_get_max_threads(), 3);
}

TEST(SingleThreadTest, GivesBackTheThreadsThatWereThere) {
  omp_set_num_threads(3);
  {
    const SingleThread single_thread;
    EXPECT_EQ(omp_get_max_threads(), 1);
    const SingleThread inner;
    EXPECT_EQ(omp_get_max_threads(), 1);
  }
  EXPECT_EQ(omp_get_max_threads(), 3);
}

TEST(SequenceTest, CopiesThroughIntermediatesFromAnyByteOn) {
  // Elements 1 to 6 of the input, as a matrix 2 x 3, are transposed by way of the scratch memory.
  const dnnl::memory::desc rows = describe(Shape{2, 3});
  const dnnl::memory::desc columns = describe({2, 3}, {1, 2});
  Sequence sequence;
  const auto from = sequence.input(0, rows, sizeof(float));
  const auto to = sequence.output(0, columns, 2 * sizeof(float));
  EXPECT_EQ(sequence.converted(from, rows), from);
  sequence.copy(sequence.converted(from, columns), to);
  EXPECT_GE(sequence.scratch_bytes(), 6 * sizeof(float));

  test::GuardedBuffer input(7 * sizeof(float));
  test::GuardedBuffer output(8 * sizeof(float));
  test::GuardedBuffer scratch(sequence.scratch_bytes());
  auto* values = reinterpret_cast<float*>(input.data());
  for (int i = 0; i < 7; ++i) values[i] = static_cast<float>(i);
  std::byte* inputs[] = {input.data()};
  std::byte* outputs[] = {output.data()};
  KernelCall call;
  call.inputs = inputs;
  call.outputs = outputs;
  call.scratch = scratch.data();
  sequence.run(call);
  const auto* results = reinterpret_cast<const float*>(output.data()) + 2;
  EXPECT_EQ(std::vector<float>(results, results + 6), (std::vector<float>{1, 4, 2, 5, 3, 6}));
  EXPECT_TRUE(output.intact() && scratch.intact());
}

TEST(SequenceTest, SaysWhatTheLibraryRefuses) {
  const Sequence sequence;
  const dnnl::memory::desc matrix = describe(Shape{2, 3});
  const std::string text =
      test::error_text([&] { sequence.describe_primitive<dnnl::matmul>(matrix, matrix, matrix); });
  EXPECT_EQ(text.substr(0, 9), "[onednn] ") << text;
}

}  // namespace
}  // namespace purine::cpu::onednn
