// How fast the CPU's kernels are, one thread, beside what the processor can do at most.
//
//   bench_operators [batch = 32] [seconds a measurement = 0.2] [text that the lines to measure contain]
//
// Prints the processor's own multiply-add peak; convolutions, each with all algorithms that can compute it
// and the one that is chosen first; fully connected layers; and what only moves memory in GB/s, each input
// and output counted once. Times are the thread's processor time: of convolutions the median of runs in which
// the algorithms take turns, of the others the best of their repetitions.
#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/operator_runner.h"
#include "purine/backend/cpu/convolution.h"
#include "purine/backend/cpu/kernels.h"
#include "purine/backend/cpu/machine_probe.h"
#include "purine/backend/cpu/worker_thread.h"
#include "purine/ops/batch_normalization.h"
#include "purine/ops/convolution.h"
#include "purine/ops/local_response_normalization.h"
#include "purine/ops/matmul.h"
#include "purine/ops/pooling.h"
#include "purine/ops/sibling_convolution.h"
#include "purine/ops/sum_n.h"
#include "purine/program/kernel.h"

namespace purine {
namespace {

using bench::Runner;
using bench::seconds_at_best;
using bench::Settings;
using cpu::ConvolutionAlgorithm;
using cpu::ConvolutionPass;
using cpu::ConvolutionProblem;

double peak_gigaflops(double budget) {
  float result = 0;
  double operations = 0;
  const double seconds =
      seconds_at_best(budget, [&] { operations = cpu::run_multiply_adds(1'000'000, &result); });
  if (result == 0) fmt::print("(the sum was 0)\n");
  return operations / seconds / 1e9;
}

struct Convolution {
  std::int64_t channels;
  std::int64_t extent;
  std::int64_t outputs;
  std::int64_t kernel;
  std::int64_t stride;
  int times;  ///< how often the network has it
};

/// The distinct convolutions of GoogLeNet with batch normalisation (Szegedy and others, "Going deeper with
/// convolutions", 2014, table 1, with 3 x 3 kernels in place of 5 x 5).
std::vector<Convolution> googlenet() {
  return {{3, 224, 64, 7, 2, 1},   {64, 56, 64, 1, 1, 1},   {64, 56, 192, 3, 1, 1},  {192, 28, 64, 1, 1, 1},
          {192, 28, 96, 1, 1, 1},  {96, 28, 128, 3, 1, 1},  {192, 28, 16, 1, 1, 1},  {16, 28, 32, 3, 1, 1},
          {192, 28, 32, 1, 1, 1},  {256, 28, 128, 1, 1, 2}, {128, 28, 192, 3, 1, 1}, {256, 28, 32, 1, 1, 1},
          {32, 28, 96, 3, 1, 1},   {256, 28, 64, 1, 1, 1},  {480, 14, 192, 1, 1, 1}, {480, 14, 96, 1, 1, 1},
          {96, 14, 208, 3, 1, 1},  {480, 14, 16, 1, 1, 1},  {16, 14, 48, 3, 1, 1},   {480, 14, 64, 1, 1, 1},
          {512, 14, 160, 1, 1, 1}, {512, 14, 112, 1, 1, 2}, {112, 14, 224, 3, 1, 1}, {512, 14, 24, 1, 1, 2},
          {24, 14, 64, 3, 1, 2},   {512, 14, 64, 1, 1, 3},  {512, 14, 128, 1, 1, 2}, {128, 14, 256, 3, 1, 1},
          {512, 14, 144, 1, 1, 1}, {144, 14, 288, 3, 1, 1}, {512, 14, 32, 1, 1, 1},  {32, 14, 64, 3, 1, 1},
          {528, 14, 256, 1, 1, 1}, {528, 14, 160, 1, 1, 1}, {160, 14, 320, 3, 1, 1}, {528, 14, 32, 1, 1, 1},
          {32, 14, 128, 3, 1, 1},  {528, 14, 128, 1, 1, 1}, {832, 7, 256, 1, 1, 1},  {832, 7, 160, 1, 1, 1},
          {160, 7, 320, 3, 1, 1},  {832, 7, 32, 1, 1, 1},   {32, 7, 128, 3, 1, 1},   {832, 7, 128, 1, 1, 2},
          {832, 7, 384, 1, 1, 1},  {832, 7, 192, 1, 1, 1},  {192, 7, 384, 3, 1, 1},  {832, 7, 48, 1, 1, 1},
          {48, 7, 128, 3, 1, 1}};
}

/// Other networks: ResNet, VGG, AlexNet, Network in Network, GoogLeNet of 2014.
std::vector<Convolution> other_networks() {
  return {
      {64, 56, 64, 3, 1, 1},    {128, 28, 128, 3, 1, 1},   {256, 14, 256, 3, 1, 1},  {512, 7, 512, 3, 1, 1},
      {64, 112, 128, 3, 1, 1},  {256, 56, 256, 3, 1, 1},   {512, 28, 512, 3, 1, 1},  {192, 13, 384, 3, 1, 1},
      {384, 13, 256, 3, 1, 1},  {64, 27, 192, 5, 1, 1},    {3, 32, 192, 5, 1, 1},    {96, 16, 192, 5, 1, 1},
      {192, 8, 192, 3, 1, 1},   {16, 28, 32, 5, 1, 1},     {3, 224, 64, 3, 1, 1},    {8, 28, 64, 3, 1, 1},
      {32, 28, 96, 5, 1, 1},    {32, 14, 64, 5, 1, 1},     {64, 56, 256, 1, 1, 1},   {256, 56, 64, 1, 1, 1},
      {256, 56, 128, 1, 1, 1},  {128, 28, 512, 1, 1, 1},   {512, 28, 128, 1, 1, 1},  {512, 28, 256, 1, 1, 1},
      {256, 14, 1024, 1, 1, 1}, {1024, 14, 256, 1, 1, 1},  {1024, 14, 512, 1, 1, 1}, {512, 7, 2048, 1, 1, 1},
      {2048, 7, 512, 1, 1, 1},  {1024, 14, 2048, 1, 2, 1}, {256, 56, 512, 1, 2, 1},  {512, 28, 1024, 1, 2, 1},
      {128, 56, 128, 3, 2, 1},  {256, 28, 256, 3, 2, 1},   {512, 14, 512, 3, 2, 1},  {192, 32, 160, 1, 1, 1},
      {160, 32, 96, 1, 1, 1},   {192, 16, 192, 1, 1, 1},   {192, 8, 192, 1, 1, 1}};
}

TensorInfo f32(Shape shape) {
  return {shape, DType::f32};
}

constexpr std::array passes = {ConvolutionPass::forward, ConvolutionPass::input_gradient,
                               ConvolutionPass::weight_gradient};

/// One pass of a convolution with each algorithm that can compute it.
class ConvolutionRunners {
 public:
  ConvolutionRunners(ConvolutionPass pass, const ConvolutionProblem& problem)
      : chosen_(cpu::choose_convolution(pass, problem)), operations_(problem.operations()) {
    const auto& options = problem.options;
    const TensorInfo image = f32(problem.image);
    const TensorInfo weight = f32(problem.weight);
    const TensorInfo output = f32(problem.output);
    for (const ConvolutionAlgorithm algorithm : cpu::convolution_algorithms) {
      if (!cpu::can_compute(algorithm, problem)) continue;
      KernelRegistry kernels;
      cpu::set_convolutions(kernels, [=](auto, const auto&) { return algorithm; });
      if (pass == ConvolutionPass::forward) {
        add(algorithm, kernels, std::make_shared<ops::Conv2d>(options), {image, weight});
      } else if (pass == ConvolutionPass::input_gradient) {
        const std::array extents{problem.image[2], problem.image[3]};
        add(algorithm, kernels, std::make_shared<ops::Conv2dInputGradient>(options, extents),
            {output, weight});
      } else {
        const std::array kernel{problem.weight[2], problem.weight[3]};
        add(algorithm, kernels, std::make_shared<ops::Conv2dWeightGradient>(options, kernel, false),
            {image, output});
      }
    }
  }

  /// Measures, prints GFLOP/s of the definition's operations and their share of the peak, by algorithm, and
  /// returns the seconds of the one that is chosen.
  double print(double budget, double peak) {
    std::vector<std::function<void()>> functions;
    for (const auto& [algorithm, runner] : runners_)
      functions.emplace_back([&runner = *runner] { runner.run(); });
    const std::vector<double> seconds = bench::seconds_in_turn(budget, functions);
    double result = 0;
    std::string others;
    for (std::size_t i = 0; i < runners_.size(); ++i) {
      const double speed = operations_ / seconds[i] / 1e9;
      if (runners_[i].first == chosen_) {
        result = seconds[i];
        fmt::print("  {:<10} {:6.1f} {:5.0f}%", cpu::name_of(chosen_), speed, 100 * speed / peak);
      } else {
        others +=
            fmt::format("{}{} {:.0f}", others.empty() ? "" : ", ", cpu::name_of(runners_[i].first), speed);
      }
    }
    fmt::print(" {:<32}", others.empty() ? "" : "(" + others + ")");
    return result;
  }

 private:
  void add(ConvolutionAlgorithm algorithm, const KernelRegistry& kernels, const ContractPtr& contract,
           std::vector<TensorInfo> inputs) {
    runners_.emplace_back(
        algorithm, std::make_unique<Runner>(kernels, contract, std::move(inputs), Layout::channels_last));
  }

  ConvolutionAlgorithm chosen_;
  double operations_;
  std::vector<std::pair<ConvolutionAlgorithm, std::unique_ptr<Runner>>> runners_;
};

void print_convolutions(const Settings& settings, double peak, std::string_view network,
                        const std::vector<Convolution>& convolutions) {
  const std::int64_t batch = settings.batch;
  fmt::print(
      "\nconvolutions of {}, batch {}, channels last: GFLOP/s of the definition's operations and their "
      "share of the peak\n{:>26}  {:<58}{:<58}{:<58}\n",
      network, batch, "", "forward", "input gradient", "weight gradient");
  double operations = 0;
  std::array<double, passes.size()> totals{};
  for (const Convolution& c : convolutions) {
    const std::int64_t padding = c.kernel / 2;
    ConvolutionProblem problem{
        {batch, c.channels, c.extent, c.extent},
        {c.outputs, c.channels, c.kernel, c.kernel},
        {},
        {.stride = {c.stride, c.stride}, .padding = {padding, padding, padding, padding}},
        Layout::channels_last};
    problem.output =
        ops::Conv2d(problem.options).infer(std::vector{f32(problem.image), f32(problem.weight)})[0].shape;
    const std::string name = fmt::format("{:4} x {:3} -> {:3}, {} x {} / {}", c.channels, c.extent, c.outputs,
                                         c.kernel, c.kernel, c.stride);
    if (!settings.includes(name)) continue;
    fmt::print("{}", name);
    for (std::size_t pass = 0; pass < passes.size(); ++pass) {
      totals[pass] += ConvolutionRunners(passes[pass], problem).print(settings.budget, peak) * c.times;
    }
    operations += c.times * problem.operations();
    fmt::print("\n");
    std::fflush(stdout);
  }
  fmt::print("{:>26}", "all together");
  for (const double seconds : totals) {
    const double speed = operations / seconds / 1e9;
    fmt::print("  {:<10} {:6.1f} {:5.0f}% {:<32}", fmt::format("{:.1f} ms", seconds * 1e3), speed,
               100 * speed / peak, "");
  }
  fmt::print("\n");
}

void print_products(const Settings& settings) {
  const auto& [kernels, batch, budget, only] = settings;
  fmt::print("\nfully connected layers, batch {}, GFLOP/s\n{:>26} {:>8} {:>8} {:>8}\n", batch, "", "forward",
             "input", "weight");
  for (const auto& [inputs, outputs] : {std::pair<std::int64_t, std::int64_t>{1024, 1000},
                                        {9216, 4096},
                                        {25088, 4096},
                                        {4096, 4096},
                                        {800, 500}}) {
    Runner forward(kernels, std::make_shared<ops::Linear>(),
                   {f32({batch, inputs}), f32({outputs, inputs}), f32({outputs})}, Layout::plain);
    Runner input(kernels, std::make_shared<ops::Matmul>(ops::MatmulOptions{}),
                 {f32({batch, outputs}), f32({outputs, inputs})}, Layout::plain);
    Runner weight(kernels, std::make_shared<ops::Matmul>(ops::MatmulOptions{.transpose_a = true}),
                  {f32({batch, outputs}), f32({batch, inputs})}, Layout::plain);
    const std::string name = fmt::format("{:>12} -> {:>5}", inputs, outputs);
    if (!settings.includes(name)) continue;
    fmt::print("{}       ", name);
    for (Runner* runner : {&forward, &input, &weight}) {
      fmt::print(" {:8.1f}", runner->operations() / seconds_at_best(budget, [&] { runner->run(); }) / 1e9);
    }
    fmt::print("\n");
  }
}

/// The 1 x 1 convolutions that read one image at the head of each inception module, one after the other and
/// as one operator: forward, and the sum of their gradients with that of the pooled branch.
void print_siblings(const Settings& settings) {
  struct Module {
    std::int64_t channels;
    std::int64_t extent;
    std::array<std::int64_t, 3> outputs;
  };
  const auto& kernels = settings.kernels;
  const std::int64_t batch = settings.batch;
  fmt::print("\nsibling 1 x 1 convolutions, batch {}, GFLOP/s by themselves and as one\n{:>48} {:>16}\n",
             batch, "forward", "input gradient");
  for (const Module& module :
       {Module{192, 28, {64, 96, 16}}, Module{256, 28, {128, 128, 32}}, Module{480, 14, {192, 96, 16}},
        Module{512, 14, {112, 144, 32}}, Module{528, 14, {256, 160, 32}}, Module{832, 7, {384, 192, 48}}}) {
    const auto& [channels, extent, outputs] = module;
    const std::string name = fmt::format("siblings {} to {}, {}, {} at {} x {}", channels, outputs[0],
                                         outputs[1], outputs[2], extent, extent);
    if (!settings.includes(name)) continue;
    const TensorInfo image = f32({batch, channels, extent, extent});
    std::vector<TensorInfo> forward_inputs = {image};
    std::vector<TensorInfo> results;
    for (const std::int64_t result : outputs) {
      forward_inputs.push_back(f32({result, channels, 1, 1}));
      results.push_back(f32({batch, result, extent, extent}));
    }
    std::vector<TensorInfo> gradient_inputs = results;
    gradient_inputs.insert(gradient_inputs.end(), forward_inputs.begin() + 1, forward_inputs.end());
    gradient_inputs.push_back(image);
    std::vector<std::unique_ptr<Runner>> forward;
    std::vector<std::unique_ptr<Runner>> backward;
    const auto runner = [&](const ContractPtr& contract, std::vector<TensorInfo> inputs) {
      return std::make_unique<Runner>(kernels, contract, std::move(inputs), Layout::channels_last);
    };
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      forward.push_back(
          runner(std::make_shared<ops::Conv2d>(ops::Conv2dOptions{}), {image, forward_inputs[i + 1]}));
      backward.push_back(
          runner(std::make_shared<ops::Conv2dInputGradient>(ops::Conv2dOptions{}, std::array{extent, extent}),
                 {results[i], forward_inputs[i + 1]}));
    }
    backward.push_back(runner(std::make_shared<ops::SumN>(), {image, image, image, image}));
    const std::unique_ptr<Runner> one_forward =
        runner(std::make_shared<ops::SiblingConv2d>(), forward_inputs);
    const std::unique_ptr<Runner> one_backward =
        runner(std::make_shared<ops::SiblingConv2dInputGradient>(outputs.size(), true), gradient_inputs);
    const auto all = [](const std::vector<std::unique_ptr<Runner>>& runners) {
      return [&] {
        for (const auto& each : runners) each->run();
      };
    };
    const std::vector<double> seconds = bench::seconds_in_turn(
        settings.budget,
        {all(forward), [&] { one_forward->run(); }, all(backward), [&] { one_backward->run(); }});
    const double operations = one_forward->operations() / 1e9;
    fmt::print("{:<42} {:6.1f} {:6.1f}    {:6.1f} {:6.1f}\n", name, operations / seconds[0],
               operations / seconds[1], operations / seconds[2], operations / seconds[3]);
    std::fflush(stdout);
  }
}

void print_bandwidth(const Settings& settings) {
  const auto& kernels = settings.kernels;
  const std::int64_t batch = settings.batch;
  const double budget = settings.budget;
  fmt::print("\nmemory-bound operators, batch {}, GB/s (milliseconds)\n{:>58} {:>16}\n", batch,
             "plain layout", "channels last");
  const auto line = [&](const std::string& name, const ContractPtr& contract,
                        std::vector<TensorInfo> inputs) {
    if (!settings.includes(name)) return;
    fmt::print("{:<42}", name);
    for (const Layout layout : {Layout::plain, Layout::channels_last}) {
      Runner runner(kernels, contract, inputs, layout);
      const double seconds = seconds_at_best(budget, [&] { runner.run(); });
      fmt::print(" {:6.1f} ({:7.2f})", runner.bytes() / seconds / 1e9, seconds * 1e3);
    }
    fmt::print("\n");
    std::fflush(stdout);
  };
  struct Pool {
    std::int64_t channels;
    std::int64_t extent;
    ops::Pool2dOptions options;
  };
  const ops::Pool2dOptions halves{.kernel = {3, 3}, .stride = {2, 2}, .ceil_mode = true};
  const ops::Pool2dOptions same{.kernel = {3, 3}, .stride = {1, 1}, .padding = {1, 1, 1, 1}};
  for (const Pool& pool : {Pool{64, 112, halves}, Pool{192, 56, halves}, Pool{480, 28, halves},
                           Pool{192, 28, same}, Pool{480, 14, same}, Pool{832, 7, same}}) {
    const TensorInfo image = f32({batch, pool.channels, pool.extent, pool.extent});
    const auto outputs = ops::MaxPool2d(pool.options).infer(std::vector{image});
    const std::array extents{pool.extent, pool.extent};
    const std::string name =
        fmt::format("{} x {} 3 x 3 / {}", pool.channels, pool.extent, pool.options.stride[0]);
    line("max_pool2d " + name, std::make_shared<ops::MaxPool2d>(pool.options), {image});
    line("max_pool2d_gradient " + name, std::make_shared<ops::MaxPool2dGradient>(pool.options, extents),
         outputs);
    line("average_pool2d " + name, std::make_shared<ops::AveragePool2d>(pool.options), {image});
    line("average_pool2d_gradient " + name,
         std::make_shared<ops::AveragePool2dGradient>(pool.options, extents), {outputs[0]});
  }
  line("global_average_pool2d 1024 x 7", std::make_shared<ops::GlobalAveragePool2d>(),
       {f32({batch, 1024, 7, 7})});
  line("global_average_pool2d_gradient 1024 x 7",
       std::make_shared<ops::GlobalAveragePool2dGradient>(std::array<std::int64_t, 2>{7, 7}),
       {f32({batch, 1024, 1, 1})});
  for (const auto& [channels, extent] : {std::pair<std::int64_t, std::int64_t>{64, 56}, {192, 56}}) {
    const TensorInfo image = f32({batch, channels, extent, extent});
    const std::string name = fmt::format("{} x {}", channels, extent);
    const ops::LocalResponseNormalizationOptions options;
    line("local_response_normalization " + name, std::make_shared<ops::LocalResponseNormalization>(options),
         {image});
    line("…_gradient " + name, std::make_shared<ops::LocalResponseNormalizationGradient>(options),
         {image, image});
  }
  for (const auto& [channels, extent] :
       {std::pair<std::int64_t, std::int64_t>{64, 112}, {192, 56}, {256, 28}, {512, 14}, {1024, 7}}) {
    const TensorInfo image = f32({batch, channels, extent, extent});
    const TensorInfo channel = f32({channels});
    const std::string name = fmt::format("{} x {}", channels, extent);
    const ops::BatchNormalizationOptions options;
    line("batch_normalization_training " + name, std::make_shared<ops::BatchNormalizationTraining>(options),
         {image, channel, channel});
    line("…_gradient " + name, std::make_shared<ops::BatchNormalizationTrainingGradient>(options),
         {image, image, channel, channel, channel});
  }
}

int run(int argc, char** argv) {
  Settings settings;
  if (argc > 1) settings.batch = std::atoll(argv[1]);
  if (argc > 2) settings.budget = std::atof(argv[2]);
  if (argc > 3) settings.only = argv[3];
  if (settings.batch < 1 || !(settings.budget >= 0)) {
    fmt::print(stderr, "usage: {} [batch] [seconds a measurement] [text]\n", argv[0]);
    return 2;
  }
  cpu::prepare_worker_thread();
  cpu::register_cpu_kernels(settings.kernels);
  const double peak = peak_gigaflops(settings.budget);
  fmt::print("multiply-add peak of one thread: {:.1f} GFLOP/s\n", peak);
  print_convolutions(settings, peak, "GoogLeNet", googlenet());
  print_convolutions(settings, peak, "other networks", other_networks());
  print_siblings(settings);
  print_products(settings);
  print_bandwidth(settings);
  return 0;
}

}  // namespace
}  // namespace purine

int main(int argc, char** argv) {
  return purine::run(argc, argv);
}
