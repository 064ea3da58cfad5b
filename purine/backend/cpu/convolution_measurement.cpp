#include "purine/backend/cpu/convolution_measurement.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <hwy/targets.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <dnnl.hpp>
#include <limits>
#include <memory>
#include <new>
#include <utility>

#include "purine/backend/cpu/convolution.h"
#include "purine/backend/cpu/machine_probe.h"
#include "purine/core/version.h"

namespace purine::cpu {
namespace {

constexpr int repetitions = 3;
/// What is slower than this many times the best so far in its first run, in which memory is new to it, is
/// given up.
constexpr double hopeless = 1.5;
/// What measurements are good to.
constexpr double clearly = 0.97;

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// Seconds of a part, times the number of parts; `best` is what others took.
double seconds_of(Kernel& kernel, ConvolutionPass pass, const ConvolutionProblem& problem,
                  MeasurementMemory& memory, double best) {
  const Shape* first = &problem.image;
  const Shape* second = &problem.weight;
  const Shape* result = &problem.output;
  if (pass == ConvolutionPass::input_gradient) std::swap(first, result);
  if (pass == ConvolutionPass::weight_gradient) std::swap(second, result);
  std::byte* const bias = memory.floats(MeasurementMemory::bias, problem.output[1]);
  const std::array<std::byte*, 3> inputs = {
      memory.floats(MeasurementMemory::first_input, first->elements()),
      memory.floats(MeasurementMemory::second_input, second->elements()), bias};
  const std::array<std::byte*, 2> outputs = {memory.floats(MeasurementMemory::result, result->elements()),
                                             bias};
  KernelCall call;
  call.inputs = inputs;
  call.outputs = outputs;
  call.scratch = memory.floats(MeasurementMemory::scratch,
                               static_cast<std::int64_t>(kernel.scratch_bytes() / sizeof(float)) + 1);
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < repetitions; ++i) {
    const double begin = processor_seconds();
    kernel.run(call);
    least = std::min(least, processor_seconds() - begin);
    if (least * kernel.parts() > hopeless * best) break;
  }
  return least * kernel.parts();
}

}  // namespace

void MeasurementMemory::Free::operator()(std::byte* memory) const {
  ::operator delete (memory, std::align_val_t{64});
}

std::byte* MeasurementMemory::floats(Use use, std::int64_t count) {
  Block& block = blocks_[use];
  if (block.memory != nullptr && block.count >= count) return block.memory.get();
  block.memory.reset();
  const std::size_t bytes = std::max<std::size_t>(static_cast<std::size_t>(count) * sizeof(float), 64);
  block.memory.reset(static_cast<std::byte*>(::operator new (bytes, std::align_val_t{64})));
  block.count = count;
  std::array<float, 1021> pattern{};
  for (std::size_t i = 0; i < pattern.size(); ++i) pattern[i] = static_cast<float>(i) / 1024.0F - 0.5F;
  for (std::size_t at = 0; at < bytes; at += sizeof(pattern)) {
    std::memcpy(block.memory.get() + at, pattern.data(), std::min(sizeof(pattern), bytes - at));
  }
  return block.memory.get();
}

std::string describe(ConvolutionPass pass, const ConvolutionProblem& problem) {
  constexpr std::array names = {"forward", "input_gradient", "weight_gradient"};
  const ops::Conv2dOptions& options = problem.options;
  return fmt::format("{} {} {} stride={} padding={} dilation={} groups={}{}{}",
                     names[static_cast<std::size_t>(pass)], problem.image.text(), problem.weight.text(),
                     options.stride, options.padding, options.dilation, options.groups,
                     problem.layout == Layout::channels_last ? " channels_last" : "",
                     problem.has_bias ? " bias" : "");
}

ConvolutionAlgorithm measure_convolution(ConvolutionPass pass, const ConvolutionProblem& problem,
                                         MeasurementMemory& memory) {
  const ConvolutionAlgorithm expected = choose_convolution(pass, problem);
  const auto able = std::count_if(convolution_algorithms.begin(), convolution_algorithms.end(),
                                  [&](auto algorithm) { return can_compute(algorithm, problem); });
  if (able == 1) return expected;
  double least = std::numeric_limits<double>::infinity();
  const auto seconds = [&](ConvolutionAlgorithm algorithm) {
    return seconds_of(*make_convolution(pass, problem, algorithm), pass, problem, memory, least);
  };
  ConvolutionAlgorithm fastest = expected;
  least = clearly * seconds(expected);
  for (const ConvolutionAlgorithm algorithm : convolution_algorithms) {
    if (algorithm == expected || !can_compute(algorithm, problem)) continue;
    const double taken = seconds(algorithm);
    if (taken >= least) continue;
    fastest = algorithm;
    least = taken;
  }
  return fastest;
}

std::string measured_machine() {
  const dnnl_version_t* version = dnnl_version();
  return fmt::format("{}, {}, oneDNN {}.{}.{}, Purine {}", processor_name(),
                     hwy::TargetName(hwy::SupportedTargets() & -hwy::SupportedTargets()), version->major,
                     version->minor, version->patch, purine::version());
}

}  // namespace purine::cpu
