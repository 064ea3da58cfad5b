#include "purine/backend/cpu/convolution_measurement.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <hwy/targets.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <dnnl.hpp>
#include <limits>
#include <memory>
#include <new>

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

/// Floats aligned as kernels need them, and not all the same.
class Floats {
 public:
  explicit Floats(std::int64_t count)
      : bytes_(std::max<std::size_t>(static_cast<std::size_t>(count) * sizeof(float), 64)),
        memory_(static_cast<std::byte*>(::operator new (bytes_, std::align_val_t{64}))) {
    auto* values = reinterpret_cast<float*>(memory_.get());
    for (std::int64_t i = 0; i < count; ++i) values[i] = static_cast<float>(i % 1021) / 1024.0F - 0.5F;
  }
  explicit Floats(const Shape& shape) : Floats(shape.elements()) {}
  std::byte* data() const { return memory_.get(); }

 private:
  struct Free {
    void operator()(std::byte* memory) const { ::operator delete (memory, std::align_val_t{64}); }
  };
  std::size_t bytes_;
  std::unique_ptr<std::byte, Free> memory_;
};

/// The three tensors of a convolution, and a bias: as inputs and outputs of its operators.
struct Tensors {
  Floats image;
  Floats weight;
  Floats output;
  Floats bias;

  explicit Tensors(const ConvolutionProblem& problem)
      : image(problem.image), weight(problem.weight), output(problem.output), bias(problem.output[1]) {}

  /// Seconds of a part, times the number of parts; `best` is what others took.
  double seconds(ConvolutionPass pass, Kernel& kernel, double best) const {
    const Floats scratch(static_cast<std::int64_t>(kernel.scratch_bytes() / sizeof(float)) + 1);
    std::array<std::byte*, 3> inputs = {image.data(), weight.data(), bias.data()};
    std::array<std::byte*, 2> outputs = {output.data(), bias.data()};
    if (pass == ConvolutionPass::input_gradient) {
      inputs = {output.data(), weight.data(), nullptr};
      outputs = {image.data(), nullptr};
    } else if (pass == ConvolutionPass::weight_gradient) {
      inputs = {image.data(), output.data(), nullptr};
      outputs = {weight.data(), bias.data()};
    }
    KernelCall call;
    call.inputs = inputs;
    call.outputs = outputs;
    call.scratch = scratch.data();
    double least = std::numeric_limits<double>::infinity();
    for (int i = 0; i < repetitions; ++i) {
      const double begin = processor_seconds();
      kernel.run(call);
      least = std::min(least, processor_seconds() - begin);
      if (least * kernel.parts() > hopeless * best) break;
    }
    return least * kernel.parts();
  }
};

}  // namespace

std::string describe(ConvolutionPass pass, const ConvolutionProblem& problem) {
  constexpr std::array names = {"forward", "input_gradient", "weight_gradient"};
  const ops::Conv2dOptions& options = problem.options;
  return fmt::format("{} {} {} stride={} padding={} dilation={} groups={}{}{}",
                     names[static_cast<std::size_t>(pass)], problem.image.text(), problem.weight.text(),
                     options.stride, options.padding, options.dilation, options.groups,
                     problem.layout == Layout::channels_last ? " channels_last" : "",
                     problem.has_bias ? " bias" : "");
}

ConvolutionAlgorithm measure_convolution(ConvolutionPass pass, const ConvolutionProblem& problem) {
  const ConvolutionAlgorithm expected = choose_convolution(pass, problem);
  const auto able = std::count_if(convolution_algorithms.begin(), convolution_algorithms.end(),
                                  [&](auto algorithm) { return can_compute(algorithm, problem); });
  if (able == 1) return expected;
  const Tensors tensors(problem);
  double least = std::numeric_limits<double>::infinity();
  const auto seconds_of = [&](ConvolutionAlgorithm algorithm) {
    const std::unique_ptr<Kernel> kernel = make_convolution(pass, problem, algorithm);
    return tensors.seconds(pass, *kernel, least);
  };
  ConvolutionAlgorithm fastest = expected;
  least = clearly * seconds_of(expected);
  for (const ConvolutionAlgorithm algorithm : convolution_algorithms) {
    if (algorithm == expected || !can_compute(algorithm, problem)) continue;
    const double seconds = seconds_of(algorithm);
    if (seconds >= least) continue;
    fastest = algorithm;
    least = seconds;
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
